package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
)

// progressLine shows how far a check is: on one line that it overwrites if out is a
// terminal, else on a line per report.
type progressLine struct {
	out      io.Writer
	terminal bool
	phase    string
	begun    time.Time // of the phase
	open     bool      // the terminal's line has no end yet
}

func newProgressLine(out io.Writer) *progressLine {
	return &progressLine{out: out, terminal: isTerminal(out)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show prints the progress now.
func (l *progressLine) show(now idlog.Progress) {
	if now.Phase != l.phase {
		l.phase, l.begun = now.Phase, time.Now()
	}
	text := progressText(now, time.Since(l.begun))
	if l.terminal {
		fmt.Fprintf(l.out, "\r\x1b[K%s", text)
		l.open = true
		return
	}
	fmt.Fprintln(l.out, text)
}

// end ends the line of a terminal.
func (l *progressLine) end() {
	if l.open {
		fmt.Fprintln(l.out)
		l.open = false
	}
}

// progressText is the text of one report. took is the time since the phase began.
func progressText(now idlog.Progress, took time.Duration) string {
	text := now.Phase
	if now.Total > 0 {
		text += fmt.Sprintf(" %d %%", min(100, 100*now.Done/now.Total))
	}
	text += fmt.Sprintf(", %d records", now.Records)
	if now.Done > 0 && now.Total > now.Done && took > 0 {
		left := time.Duration(float64(took) * float64(now.Total-now.Done) / float64(now.Done))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}
