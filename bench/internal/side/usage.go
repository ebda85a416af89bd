package side

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// CPU returns the CPU time that the process has used, in steps of 10 ms, and whether it
// is known, which takes Linux.
func (p *Process) CPU() (used time.Duration, known bool) {
	data, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, false
	}
	// The second field is the name in parentheses; utime and stime are the 14th and
	// 15th, in ticks of 10 ms.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	utime, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	stime, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(utime+stime) * 10 * time.Millisecond, err1 == nil && err2 == nil
}

// Spending returns a function that says how many microseconds of CPU time the process
// has used since, for each of n requests; 0: unknown.
func (p *Process) Spending() func(n float64) float64 {
	before, known := p.CPU()
	return func(n float64) float64 {
		after, ok := p.CPU()
		if !known || !ok || n == 0 {
			return 0
		}
		return (after - before).Seconds() * 1e6 / n
	}
}

// Memory returns the bytes of memory that the process holds (RSS), and the most that it
// has held since it began or since ForgetPeak. It takes Linux.
func (p *Process) Memory() (now, peak int64, err error) {
	data, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return 0, 0, err
	}
	for field, into := range map[string]*int64{"VmRSS:": &now, "VmHWM:": &peak} {
		_, rest, _ := bytes.Cut(data, []byte("\n"+field))
		if _, err := fmt.Sscanf(string(rest), "%d kB", into); err != nil {
			return 0, 0, fmt.Errorf("read %s of %s: %w", field, p.Name, err)
		}
		*into <<= 10
	}
	return now, peak, nil
}

// ForgetPeak begins the peak of Memory anew.
func (p *Process) ForgetPeak() error {
	return os.WriteFile(p.proc("clear_refs"), []byte("5"), 0)
}

func (p *Process) proc(file string) string {
	return fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file)
}
