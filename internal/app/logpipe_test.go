package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
)

// slowReader is a pipe whose reader takes nothing until it is released.
type slowReader struct {
	began, release chan struct{}
	lines          []string
}

func (r *slowReader) Write(p []byte) (int, error) {
	if len(r.lines) == 0 {
		close(r.began)
		<-r.release
	}
	r.lines = append(r.lines, string(p))
	return len(p), nil
}

// TestLogThatIsNotRead: lines that wait come in order, and those that were dropped are counted, in
// the format of the log.
func TestLogThatIsNotRead(t *testing.T) {
	t.Parallel()
	const waiting, dropped = 4096, 10
	r := &slowReader{began: make(chan struct{}), release: make(chan struct{})}
	pipe := app.NewLogPipe(r, config.Log{Level: "info", Format: "json"})
	for i := range 1 + waiting + dropped {
		line := []byte(fmt.Sprintln(i))
		if n, err := pipe.Write(line); n != len(line) || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		clear(line) // slog uses its buffer again
		if i == 0 {
			<-r.began
		}
	}
	close(r.release)
	pipe.Close()
	var note struct {
		Msg     string
		Missing int
	}
	if len(r.lines) != waiting+2 || json.Unmarshal([]byte(r.lines[1]), &note) != nil || note.Missing != dropped || !strings.Contains(note.Msg, "lines are missing") {
		t.Fatalf("%d lines, the second is %s", len(r.lines), r.lines[1])
	}
	for i, line := range append(r.lines[:1:1], r.lines[2:]...) {
		if line != fmt.Sprintln(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}
