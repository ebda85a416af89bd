package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
)

// TestBenchLogsTimes: the time at which a service made an ID lies within the times of the call, also
// when requests are due before they are sent.
func TestBenchLogsTimes(t *testing.T) {
	t.Parallel()
	var made [20]atomic.Int64 // by ID
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if id := n.Add(1); int(id) < len(made) {
			made[id].Store(time.Now().UnixNano())
			fmt.Fprintln(w, id)
		}
	}))
	defer s.Close()
	logs := filepath.Join(t.TempDir(), "logs")
	_, code, stderr := runBench(t.Context(), t, "--url", s.URL, "--tag", "a", "--clients", "1", "--ids", "10", "--rate", "1e6", "--log", logs, "--log-format", "times")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	file, err := os.Open(filepath.Join(logs, "client-0001-node-1.idlog"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end := int64(0)
	for r, id := idlog.NewReader(file, "log"), int64(1); id <= 10; id++ {
		rec, err := r.Next()
		if at := made[id].Load(); err != nil || rec.Lo != id || rec.Hi != id || rec.Call.Begin < end || rec.Call.Begin > at || rec.Call.End < at {
			t.Errorf("%v, error %v; want ID %d, made at %d, in a call from %d on", rec, err, id, at, end)
		}
		end = rec.Call.End
	}
}
