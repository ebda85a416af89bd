package cli_test

import (
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
