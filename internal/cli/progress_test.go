package cli_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/internal/cli"
)

func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		now  idlog.Progress
		took time.Duration
		want string
	}{
		{idlog.Progress{Phase: "read", Done: 25, Total: 100, Records: 7}, 10 * time.Second, "read 25 %, 7 records, 30s left"},
		{idlog.Progress{Phase: "read", Done: 0, Total: 100}, time.Second, "read 0 %, 0 records"},
		{idlog.Progress{Phase: "merge", Done: 110, Total: 100, Records: 9}, time.Second, "merge 100 %, 9 records"},
		{idlog.Progress{Phase: "read", Done: 5, Records: 2}, time.Second, "read, 2 records"},
	} {
		if got := cli.ProgressText(tt.now, tt.took); got != tt.want {
			t.Errorf("%+v after %v: %q, want %q", tt.now, tt.took, got, tt.want)
		}
	}
}

// TestProgressIsOneLine: on a terminal each report overwrites the one before; in a file
// each has a line of its own.
func TestProgressIsOneLine(t *testing.T) {
	t.Parallel()
	reports := []idlog.Progress{{Phase: "read", Total: 100}, {Phase: "read", Records: 7}}
	for terminal, want := range map[bool]string{
		true:  "\r\x1b[Kread 0 %, 0 records\r\x1b[Kread, 7 records\n",
		false: "read 0 %, 0 records\nread, 7 records\n",
	} {
		var out bytes.Buffer
		if cli.ShowProgress(&out, terminal, reports...); out.String() != want {
			t.Errorf("terminal %t: %q, want %q", terminal, out.String(), want)
		}
	}
}
