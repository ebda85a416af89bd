package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// benchResult is what the tests read of a report.
type benchResult struct {
	Requests uint64 `json:"requests,string"`
	Answered uint64 `json:"answered,string"`
	Failed   uint64 `json:"failed,string"`
	NotSent  uint64 `json:"not_sent,string"`
	IDs      uint64 `json:"ids,string"`
	Latency  struct {
		P50, P99, Max float64
	} `json:"latency_seconds"`
	Errors []struct {
		Kind  string
		Count uint64 `json:",string"`
	}
}

// runBench runs leaf bench in this process.
func runBench(ctx context.Context, t *testing.T, args ...string) (result benchResult, code int, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(ctx, cli.Process{Args: append([]string{"bench", "--json"}, args...), Stdout: &out, Stderr: &errs})
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &result); err != nil {
			t.Fatalf("%v in %s", err, &out)
		}
	}
	return result, code, errs.String()
}

// verifyLogs runs leaf verify and returns its exit code and what it counted.
func verifyLogs(t *testing.T, folder string, flags ...string) (code int, ids, duplicates string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.idlog"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs in %s: %v", folder, err)
	}
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Process{Args: slices.Concat([]string{"verify", "--json"}, flags, files), Stdout: &out, Stderr: &errs})
	var report struct {
		Total struct{ IDs, Duplicates string }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("exit code %d: %v; %s", code, err, &errs)
	}
	return code, report.Total.IDs, report.Total.Duplicates
}

func TestBenchAndVerify(t *testing.T) {
	t.Parallel()
	a := serve(t, dataDir(t))
	waitReady(t, a)
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"one ID per request", nil},
		{"batches", []string{"--count", "701"}},
		{"by schedule, text logs", []string{"--count", "50", "--rate", "1000", "--log-format", "text"}},
		{"with times", []string{"--count", "7", "--log-format", "times"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logs := filepath.Join(t.TempDir(), "logs")
			args := slices.Concat(tt.args, []string{"--url", "http://" + a.addr, "--tag", "leaf-segment-test", "--snowflake", "--clients", "5", "--ids", "3000", "--log", logs})
			got, code, stderr := runBench(t.Context(), t, args...)
			if code != 0 || got.Failed != 0 || got.IDs < 3000 || got.Requests != got.Answered {
				t.Fatalf("exit code %d, %+v; %s", code, got, stderr)
			}
			var strict []string
			if slices.Contains(tt.args, "times") {
				strict = []string{"--strict"} // one node keeps it by itself
			}
			if code, ids, _ := verifyLogs(t, logs, strict...); code != 0 || ids != strconv.FormatUint(got.IDs, 10) {
				t.Errorf("verify: exit code %d and %s IDs, want 0 and %d", code, ids, got.IDs)
			}
		})
	}

	t.Run("two nodes that know nothing of each other", func(t *testing.T) {
		b := serve(t, dataDir(t))
		logs := filepath.Join(t.TempDir(), "logs")
		first := httpID(t, a.addr)
		for httpID(t, b.addr) < first { // until both are close
		}
		_, code, stderr := runBench(t.Context(), t, "--url", "http://"+a.addr, "--url", "http://"+b.addr, "--tag", "leaf-segment-test", "--ids", "20000", "--count", "100", "--log", logs)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if code, _, duplicates := verifyLogs(t, logs); code != 1 || duplicates == "0" {
			t.Errorf("verify: exit code %d and %s duplicates, want 1 and some", code, duplicates)
		}
		b.end(t, syscall.SIGTERM)
	})
	a.end(t, syscall.SIGTERM)
}

// waitReady waits until all modes of a node issue.
func waitReady(t *testing.T, p *process) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		info, err := waitForNode(p.dir)
		if err == nil && info.Ready && settled(strings.Join(info.Reasons, "\n")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %v, %q", err, info.Reasons)
		}
	}
}

// httpID takes a thousand IDs and returns the last one.
func httpID(t *testing.T, addr string) int {
	t.Helper()
	status, body, err := httpGet(addr, "/api/segment/get/leaf-segment-test?count=1000")
	lines := strings.Fields(body)
	if err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	id, err := strconv.Atoi(lines[len(lines)-1])
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestBenchEndsCleanly interrupts a run without end, as Ctrl-C does.
func TestBenchEndsCleanly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var id int64 // one client: no two requests at once
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if id++; id == 100 {
			cancel()
		}
		fmt.Fprint(w, id)
	}))
	defer node.Close()
	logs := filepath.Join(t.TempDir(), "logs")
	got, code, stderr := runBench(ctx, t, "--url", node.URL, "--tag", "a", "--clients", "1", "--duration", "1h", "--log", logs)
	if code != 0 || got.IDs != 100 {
		t.Errorf("exit code %d, %+v; %s", code, got, stderr)
	}
	if code, ids, _ := verifyLogs(t, logs); code != 0 || ids != "100" {
		t.Errorf("verify: exit code %d and %s IDs, want 0 and 100", code, ids)
	}
}

// TestBenchIsKilled ends a run by SIGKILL. Its logs can be checked, up to the second
// in which that was: so few IDs are written only because the logs are flushed.
func TestBenchIsKilled(t *testing.T) {
	t.Parallel()
	var id atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, id.Add(2)) }))
	defer node.Close()
	logs := filepath.Join(t.TempDir(), "logs")
	bench := exec.Command("leaf", "bench", "--url", node.URL, "--tag", "a", "--clients", "3", "--rate", "300", "--duration", "1h", "--log", logs)
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	flushed := func() (size int64) {
		files, _ := filepath.Glob(filepath.Join(logs, "*.idlog"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				size += info.Size()
			}
		}
		return size
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); flushed() < 100 && time.Now().Before(deadline); {
		<-tick.C
	}
	if err := bench.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = bench.Wait()
	if code, ids, _ := verifyLogs(t, logs); code != 0 || ids == "0" {
		t.Errorf("verify: exit code %d and %s IDs, want 0 and some", code, ids)
	}
}

// TestBenchCountsFailures has a node that fails in each way.
func TestBenchCountsFailures(t *testing.T) {
	t.Parallel()
	hijack := func(w http.ResponseWriter, text string) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write([]byte(text))
		c.Close()
	}
	for _, tt := range []struct {
		name  string
		reply http.HandlerFunc
		args  []string
		want  string
	}{
		{"problem", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"not_ready"}`)
		}, nil, "503 not_ready"},
		{"of a proxy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, nil, "502"},
		{"no digits", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, nil, "malformed reply"},
		{"one ID too few", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ids":["1"]}`) }, []string{"--count", "2"}, "malformed reply"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) }, nil, "malformed reply"},
		{"closed", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "") }, nil, "connection lost"},
		{"closed in a reply", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12")
		}, nil, "connection lost"},
		{"no reply", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"--timeout", "20ms"}, "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var requests atomic.Int64
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 5 {
					cancel()
				}
				tt.reply(w, r)
			}))
			defer node.Close()
			logs := filepath.Join(t.TempDir(), "logs")
			got, code, stderr := runBench(ctx, t, append(tt.args, "--url", node.URL, "--tag", "a", "--clients", "2", "--duration", "1m", "--log", logs)...)
			if code != 4 || got.Answered != 0 || got.Failed == 0 || got.IDs != 0 {
				t.Errorf("exit code %d, %+v; %s", code, got, stderr)
			}
			if len(got.Errors) != 1 || got.Errors[0].Kind != tt.want || got.Errors[0].Count != got.Failed {
				t.Errorf("errors: got %+v, want %d of %q", got.Errors, got.Failed, tt.want)
			}
			if _, ids, _ := verifyLogs(t, logs); ids != "0" {
				t.Errorf("%s IDs in the logs", ids)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		got, code, _ := runBench(t.Context(), t, "--url", "http://"+port.Unused(t), "--tag", "a", "--duration", "1s")
		if code != 4 || len(got.Errors) != 1 || got.Errors[0].Kind != "connection refused" {
			t.Errorf("exit code %d, %+v", code, got)
		}
		if most := uint64(16 * 102); got.Failed > most {
			t.Errorf("%d attempts in 1 s on a dead node, at most %d wanted", got.Failed, most)
		}
	})
}

// TestBenchSurvivesAKeepAliveTimeout closes each connection after a reply, without
// saying so. A request on it is sent again.
func TestBenchSurvivesAKeepAliveTimeout(t *testing.T) {
	t.Parallel()
	var id int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		id++
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		text := strconv.FormatInt(id, 10)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		c.Close()
	}))
	defer node.Close()
	got, code, stderr := runBench(t.Context(), t, "--url", node.URL, "--tag", "a", "--clients", "1", "--ids", "20")
	if code != 0 || got.Failed != 0 || got.IDs != 20 {
		t.Errorf("exit code %d, %+v; %s", code, got, stderr)
	}
}

// TestBenchCountsFromTheSchedule has a node at least four times slower than the schedule:
// the 26th request is due after 125 ms and answered after 520 ms at the earliest, however
// busy the machine is.
func TestBenchCountsFromTheSchedule(t *testing.T) {
	t.Parallel()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		timer := time.NewTimer(20 * time.Millisecond)
		<-timer.C
		fmt.Fprint(w, 1)
	}))
	defer node.Close()
	got, code, stderr := runBench(t.Context(), t, "--url", node.URL, "--tag", "a", "--clients", "1", "--rate", "200", "--ids", "26")
	if code != 0 || got.Latency.Max < 0.25 || got.Latency.P50 < 0.1 {
		t.Errorf("exit code %d, %+v; %s", code, got, stderr)
	}
	if got.Requests != 26 || got.NotSent < 50 {
		t.Errorf("%d sent, %d not sent, want 26 and at least 50", got.Requests, got.NotSent)
	}
}

// TestBenchRequests looks at what is asked for: tags may have any character.
func TestBenchRequests(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 6)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Accept")
		fmt.Fprint(w, `{"ids":["1","2"]}`)
	}))
	defer node.Close()
	_, code, stderr := runBench(t.Context(), t, "--url", node.URL+"/leaf/", "--clients", "1", "--count", "2", "--ids", "12", "--tag", "a,b", "--tag", "ü/..", "--tag", "..", "--snowflake", "--sequence", "ch t", "--entities", "2")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	close(asked)
	for _, want := range []string{"api/segment/get/a%2Cb", "api/segment/get/%C3%BC%2F..", "api/segment/get/..", "api/snowflake/get/snowflake", "v1/sequence/next/ch%20t/1", "v1/sequence/next/ch%20t/2"} {
		if got, want := <-asked, "GET /leaf/"+want+"?count=2 application/json"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, tt := range []struct{ args, want string }{
		{"", "expected --tag, --sequence or --snowflake"},
		{"--sequence a --entities 0", "must be 1 to 10000"},
		{"--sequence a --tag a/7", "together with --sequence a"},
		{"--tag a --url ftp://x", "must be http://"},
		{"--tag a --count 0", "must be 1 to 100000"},
		{"--tag a --clients 0", "must be 1 to 10000"},
		{"--tag a --ids 0", "must be 1 or more; leave it out for no limit"},
		{"--tag a --ids=-1", "must be 1 or more"},
		{"--tag a --rate=-1", "must be 0 to"},
		{"--tag a --rate NaN", "must be 0 to"},
		{"--tag a --timeout 0s", "must be positive"},
		{"--tag snowflake --snowflake", "together with --snowflake"},
		{"--tag a --log-format xml", "log-format"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // what is not refused may have no end
		_, code, stderr := runBench(ctx, t, append(strings.Fields(tt.args), "--log", folder)...)
		cancel()
		if code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, %s, want 2 and %q", tt.args, code, stderr, tt.want)
		}
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, 1) }))
	defer node.Close()
	for i, want := range []int{0, 1} { // the second run finds the logs of the first
		_, code, stderr := runBench(t.Context(), t, "--url", node.URL, "--tag", "a", "--ids", "1", "--log", folder)
		if code != want {
			t.Errorf("run %d: exit code %d, want %d; %s", i+1, code, want, stderr)
		}
		if i == 1 && !strings.Contains(stderr, "the folder holds the logs of an earlier run (client-0001-node-1.idlog); give another folder, or remove this one") {
			t.Error(stderr)
		}
	}
}

// TestBenchEndsWhereRepeatingIsInVain has nodes whose answer cannot change: the run ends
// with the cause, long before its hour is over.
func TestBenchEndsWhereRepeatingIsInVain(t *testing.T) {
	t.Parallel()
	problem := func(status int, code string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"code":%q}`, code)
		}))
	}
	for _, tt := range []struct {
		name string
		node *httptest.Server
		code int
		want string
	}{
		{"unknown sequence", problem(http.StatusNotFound, "unknown_tag"), 3, `unknown tag: asked for an ID of sequence "a", which leaf sequence create makes; leaf tag list`},
		{"unknown tag", problem(http.StatusNotFound, "unknown_tag"), 3, `unknown tag: asked for an ID of tag "a"; leaf tag list shows the tags`},
		{"no token", problem(http.StatusUnauthorized, "unauthenticated"), 5, "not authenticated"},
		{"certificate", httptest.NewTLSServer(http.NotFoundHandler()), 1, "certificate signed by unknown authority; if the certificate is right, name its file, or that of its authority, with --endpoint-ca"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defer tt.node.Close()
			tt.node.Config.ErrorLog = log.New(io.Discard, "", 0)
			what := "--tag"
			if tt.name == "unknown sequence" {
				what = "--sequence"
			}
			_, code, stderr := runBench(t.Context(), t, "--url", tt.node.URL, what, "a", "--duration", "1h")
			if code != tt.code || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "not ready") {
				t.Errorf("exit code %d, %s, want %d and %q", code, stderr, tt.code, tt.want)
			}
		})
	}
}

func TestParseIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body  string
		count int
		want  []leaf.Range
	}{
		{"7", 1, []leaf.Range{{Lo: 7, Hi: 8}}},
		{"7\n", 1, []leaf.Range{{Lo: 7, Hi: 8}}},
		{"9223372036854775806", 1, []leaf.Range{{Lo: 1<<63 - 2, Hi: 1<<63 - 1}}},
		{"9223372036854775807", 1, nil},
		{"18446744073709551617", 1, nil},
		{"", 1, nil},
		{"-7", 1, nil},
		{"7 8", 1, nil},
		{"7\n8\n", 1, nil},
		{`{"ids":["7","8","5"]}` + "\n", 3, []leaf.Range{{Lo: 7, Hi: 9}, {Lo: 5, Hi: 6}}},
		{`{"ids":["7","8","5"]}`, 2, nil},
		{`{"ids":["7","8","5"]}`, 4, nil},
		{`{"ids":["7","8"`, 2, nil},
		{`{"ids":["7","8"]}{`, 2, nil},
		{`{"ids":[7,8]}`, 2, nil},
		{`{"ids":["7",""]}`, 2, nil},
		{`{"ids":[]}`, 2, nil},
	} {
		got, err := cli.ParseIDs([]byte(tt.body), tt.count)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%q, %d: %v (-want +got):\n%s", tt.body, tt.count, err, diff)
		}
	}
}

// TestHistogram compares quantiles with those of the sorted values.
func TestHistogram(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []int64{1, 200, 1e3, 1e6, 1e9, 1 << 40} {
		var h cli.Histogram
		var all []time.Duration
		for range 5000 {
			d := time.Duration(rng.Int64N(scale + 1))
			h.Add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.0002, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[min(int(q*5000+0.999999), 5000)-1]
			if got := h.Quantile(q); got < want || float64(got) > float64(want)*(1+1.0/128)+1 {
				t.Errorf("scale %d, quantile %v: got %d, want %d or up to 1/128 more", scale, q, got, want)
			}
		}
	}
	var h cli.Histogram
	h.Add(-5)
	h.Add(1<<63 - 1)
	if lo, hi := h.Quantile(0.5), h.Quantile(1); lo != 0 || hi != 1<<41-1 {
		t.Errorf("beyond both ends: got %d and %d", lo, hi)
	}
}
