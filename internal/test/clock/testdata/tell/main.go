// Command tell answers each line of its input by what its clocks say, as
// nanoseconds: the wall clock, the monotonic time since its start, the wall time
// since its start, the wall clock as a library sees it, and the number of ticks
// of 10 ms that it had counted before it looked at these clocks, and after.
package main

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// sees is a library's clock: the time that log/slog gives a record.
type sees struct{ last time.Time }

func (s *sees) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimPrefix(string(line), "time="), " ")
	s.last, _ = time.Parse(time.RFC3339Nano, text)
	return len(line), nil
}

func main() {
	start := time.Now()
	var ticks atomic.Int64
	go func() {
		for range time.NewTicker(10 * time.Millisecond).C {
			ticks.Add(1)
		}
	}()
	library := &sees{}
	logger := slog.New(slog.NewTextHandler(library, nil))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		logger.Info("")
		before := ticks.Load()
		now := time.Now()
		fmt.Println(now.UnixNano(), int64(now.Sub(start)), int64(now.Round(0).Sub(start.Round(0))), library.last.UnixNano(), before, ticks.Load())
	}
}
