package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/segment"
)

var repairPlan = segment.RepairPlan{
	Row: 31, Posted: 121, Deleted: 141, ClusterFence: 131, Above: math.MaxInt64 - 1, First: math.MaxInt64, Refused: "no", Alone: "no tables",
	Nodes: []segment.RepairNode{{Node: "a", End: 121, State: segment.RepairNodeLatched}, {Node: "b", State: segment.RepairNodeSilent}},
}

// mirror remembers the last request, and answers err, or reply, or by default the empty reply.
type mirror struct {
	mu  sync.Mutex // connections have goroutines of their own
	got any

	reply any
	err   error
}

// set replaces the last request.
func (m *mirror) set(request any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = request
}

// last returns the last request.
func (m *mirror) last() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.got
}

func (m *mirror) Do(_ context.Context, request any) (any, error) {
	m.set(request)
	op, err := manage.Of(request)
	if err = errors.Join(err, m.err); err != nil {
		return nil, err
	}
	if m.reply != nil {
		return m.reply, nil
	}
	return reflect.Zero(op.Reply).Interface(), nil
}

var nodes = manage.Nodes{Directory: "etcd://a:1/prod", Nodes: []manage.Node{{Node: discovery.Node{ID: "n1", Zone: "a", Weight: 7, HTTP: "h:1", GRPC: "h:2", RESP: "h:3"}, Own: true}}}

var reload = manage.Reload{Changed: []manage.Difference{{Key: "log.level", Now: "info", Then: "debug"}}, Restart: []manage.Difference{}}

var status = manage.Status{Node: "n1", Ready: true, Segment: manage.Mode{Enabled: true, Ready: true}, Alarms: []manage.Alarm{}, Tags: []manage.TagStock{{Tag: "a", Stock: 7}}, Claim: &manage.Claim{Worker: 7}}

var workers = manage.Workers{Registry: "etcd", Kind: "leased", Now: math.MaxInt64, Workers: []manage.Worker{{Number: 7, State: manage.WorkerHeld, Bound: math.MaxInt64 - 1, Own: true}}}

var limits = manage.Limits{
	Limits: []manage.Limit{
		{Kind: manage.LimitOfTag, Name: "a", Rate: math.MaxInt64, Quota: math.MaxInt64 - 1, Used: 1<<53 + 1, Refused: 1<<53 + 3, Store: "db"},
		{Kind: manage.LimitOfClient, Name: "", Blocked: true},
	},
	Node: &limit.Status{Rate: 1<<53 + 1, Segment: limit.Waiting{Waiting: 7, Limit: 9, Rejected: 1<<53 + 1}},
}

// start serves c in a short new folder and returns a client and the folder.
func start(t *testing.T, c manage.Backend) (*admin.Client, string) {
	t.Helper()
	dir := shortDir(t)
	ln, err := admin.Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := admin.NewServer(c, admin.Config{Logger: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	client := admin.NewClient(dir)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(s.Stop(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return client, dir
}

// shortDir is t.TempDir with a path short enough for a socket on every system.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestEveryCallArrivesUnchanged(t *testing.T) {
	t.Parallel()
	const big = math.MaxInt64 - 1
	strange := "a/../b c%2F?&=\"\\\t中文😀"
	tag := manage.Tag{Name: strange, MaxID: big, Step: 1 << 30, Description: "d", UpdateTime: time.Unix(1, 0).UTC(), Fence: big, State: manage.TagLatched, Store: "a"}
	m := &mirror{}
	c, _ := start(t, m)
	maxID, step, fixed := int64(big), int64(5), false
	change := segment.Change{MaxID: &maxID, Step: &step, FixedStep: &fixed}
	limitChange := manage.LimitChange{Rate: &maxID, Quota: &step, Blocked: &fixed}
	newTag := segment.NewRow{Tag: strange, Start: big, Step: 7, Options: segment.Options{FixedStep: true}}

	for name, tt := range map[string]struct{ request, reply any }{
		"info":                         {manage.GetInfo{}, manage.Info{PID: 7, Stores: []string{"sqlite:x"}, Ready: true}},
		"tags":                         {manage.ListTags{}, []manage.Tag{tag}},
		"tag":                          {manage.GetTag{Name: strange}, tag},
		"tag dots":                     {manage.GetTag{Name: ".."}, tag},
		"create":                       {manage.CreateTag{NewRow: newTag}, tag},
		"set":                          {manage.SetTag{Name: strange, Change: change}, tag},
		"set nothing":                  {manage.SetTag{Name: "x"}, tag},
		"delete":                       {manage.DeleteTag{Name: strange}, manage.None{}},
		"repair":                       {manage.RepairTag{Name: strange, Above: big}, manage.Repair{Tag: tag, Plan: repairPlan}},
		"plan a repair":                {manage.PlanRepair{Name: strange, Above: big}, repairPlan},
		"limits":                       {manage.ListLimits{}, limits},
		"limit a tag":                  {manage.SetTagLimit{Name: strange, LimitChange: limitChange}, limits.Limits[0]},
		"limit a client":               {manage.SetClientLimit{Name: strange, LimitChange: limitChange}, limits.Limits[1]},
		"limit clients without a name": {manage.SetClientLimit{}, limits.Limits[1]},
		"next":                         {manage.Next{Tag: strange, N: 3}, manage.Issued{Ranges: []leaf.Range{{Lo: math.MaxInt64 - 3, Hi: math.MaxInt64}}}},
		"next snowflake":               {manage.NextSnowflake{N: 3}, manage.Issued{Ranges: []leaf.Range{{Lo: 1, Hi: 2}, {Lo: 5, Hi: 7}}}},
		"workers":                      {manage.ListWorkers{}, workers},
		"confirm clock":                {manage.ConfirmClock{}, manage.ClockReply{Now: time.Unix(1, 0).UTC()}},
		"reload":                       {manage.ReloadConfig{}, reload},
		"plan a reload":                {manage.PlanReload{}, reload},
		"status":                       {manage.GetStatus{Tags: 7}, status},
		"nodes":                        {manage.ListNodes{}, nodes},
		"weight":                       {manage.SetWeight{Weight: 7}, nodes.Nodes[0]},
	} {
		t.Run(name, func(t *testing.T) {
			m.set(nil)
			m.reply = tt.reply
			reply, err := c.Do(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.request, m.last()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.reply, reply); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTextsThatAreNotUnicode do not leave the client: the node would read other ones.
func TestTextsThatAreNotUnicode(t *testing.T) {
	t.Parallel()
	f := &mirror{}
	c, _ := start(t, f)
	text := "a\xff"
	_, created := manage.Ask(t.Context(), c, manage.CreateTag{NewRow: segment.NewRow{Tag: text, Start: 1, Step: 1}})
	_, described := manage.Ask(t.Context(), c, manage.CreateTag{NewRow: segment.NewRow{Tag: "a", Start: 1, Step: 1, Description: text}})
	_, changed := manage.Ask(t.Context(), c, manage.SetTag{Name: "a", Change: segment.Change{Description: &text}})
	for what, err := range map[string]error{"create": created, "create with a description": described, "set": changed} {
		if !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: %v; want ErrBadRequest", what, err)
		}
	}
	if f.last() != nil {
		t.Errorf("the node was asked for %q", f.last())
	}
}

func TestErrorsKeepTheirSentinelAndText(t *testing.T) {
	t.Parallel()
	f := &mirror{}
	c, _ := start(t, f)
	for _, class := range leaf.Classes() {
		if class.Err == nil {
			continue
		}
		f.err = fmt.Errorf("%w: tag %q, say why", class.Err, "x")
		_, err := manage.Ask(t.Context(), c, manage.GetTag{Name: "x"})
		if !errors.Is(err, class.Err) || err.Error() != f.err.Error() {
			t.Errorf("%s: got %v, want %v", class.Code, err, f.err)
		}
	}
	f.err = errors.New("password is hunter2")
	if _, err := manage.Ask(t.Context(), c, manage.GetTag{Name: "x"}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("internal cause: got %v, want an error without it", err)
	}
}

func TestNoNode(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := admin.NewClient(dir)
	if _, err := manage.Ask(t.Context(), c, manage.GetInfo{}); !errors.Is(err, admin.ErrNoNode) {
		t.Errorf("no socket: got %v, want ErrNoNode", err)
	}
	leaveStaleSocket(t, filepath.Join(dir, "leaf.sock"))
	if _, err := manage.Ask(t.Context(), c, manage.GetInfo{}); !errors.Is(err, admin.ErrNoNode) {
		t.Errorf("stale socket: got %v, want ErrNoNode", err)
	}
}

// TestSocketOutOfReach: the data directory is a file, or belongs to another user. No node is
// away, and a start of one cures nothing.
func TestSocketOutOfReach(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := manage.Ask(t.Context(), admin.NewClient(file), manage.GetInfo{}); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "must be a folder") {
		t.Errorf("a file: got %v, want ErrBadRequest", err)
	}
	if os.Getuid() == 0 {
		t.Skip("root may enter every folder")
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) //nolint:gosec // a folder
	if _, err := manage.Ask(t.Context(), admin.NewClient(dir), manage.GetInfo{}); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "as the user that the node runs as") {
		t.Errorf("a folder of another user: got %v, want ErrConflict", err)
	}
}

// leaveStaleSocket does what a killed node does.
func leaveStaleSocket(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	t.Run("mode is 0600 and close removes it", func(t *testing.T) {
		t.Parallel()
		dir := shortDir(t)
		path := filepath.Join(dir, "leaf.sock")
		ln, err := admin.Listen(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode: got %v, %v, want 0600", info.Mode(), err)
		}
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("after close: got %v, want no file", err)
		}
	})
	t.Run("replaces a stale socket", func(t *testing.T) {
		t.Parallel()
		dir := shortDir(t)
		path := filepath.Join(dir, "leaf.sock")
		leaveStaleSocket(t, path)
		ln, err := admin.Listen(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("keeps a file that is no socket", func(t *testing.T) {
		t.Parallel()
		dir := shortDir(t)
		path := filepath.Join(dir, "leaf.sock")
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Listen(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is not a socket") {
			t.Errorf("got %v", err)
		}
		if content, err := os.ReadFile(path); string(content) != "mine" {
			t.Errorf("file: got %q, %v", content, err)
		}
	})
	t.Run("path too long", func(t *testing.T) {
		t.Parallel()
		dir := "/" + strings.Repeat("d", 120)
		_, err := admin.Listen(t.Context(), dir)
		if err == nil || !strings.Contains(err.Error(), "choose a shorter --data-dir") {
			t.Errorf("listen: got %v", err)
		}
		if _, err := manage.Ask(t.Context(), admin.NewClient(dir), manage.GetInfo{}); err == nil || !strings.Contains(err.Error(), "choose a shorter --data-dir") {
			t.Errorf("client: got %v", err)
		}
	})
}

func TestRawRequestsAreBounded(t *testing.T) {
	t.Parallel()
	_, dir := start(t, &mirror{})
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, "leaf.sock"))
	}}
	t.Cleanup(tr.CloseIdleConnections)
	cases := []struct {
		name, method, path, body string
		status                   int
		text                     string
	}{
		{"unknown route", "GET", "/v2/info", "", 404, "no route"},
		{"wrong method", "PUT", "/v1/info", "", 404, "no route"},
		{"tag is no UTF-8", "POST", "/v1/tag", "{\"tag\":\"a\xff\"}", 400, "valid UTF-8"},
		{"tag has half a pair", "POST", "/v1/tag", `{"tag":"a\\\ud83d\u0041"}`, 400, "valid UTF-8"},
		{"tag ends in half a pair", "POST", "/v1/tag", `{"tag":"a\ud83d"}`, 400, "valid UTF-8"},
		{"tag has the halves in turn", "POST", "/v1/tag", `{"tag":"a\ude00\ud83d"}`, 400, "valid UTF-8"},
		{"description is no UTF-8", "PATCH", "/v1/tag?tag=a", "{\"description\":\"\xff\"}", 400, "valid UTF-8"},
		{"body too large", "POST", "/v1/tag", `{"tag":"` + strings.Repeat("x", 70<<10) + `"}`, 400, "too large"},
		{"unknown field", "POST", "/v1/tag", `{"name":"x"}`, 400, "unknown field"},
		{"two values", "POST", "/v1/tag", `{"tag":"x","start":"1","step":1} {}`, 400, "one JSON value"},
		{"no body", "POST", "/v1/repair?tag=x", "", 400, "bad request"},
		{"above is no number", "GET", "/v1/repair?tag=x&above=y", "", 400, "bad request"},
		{"limit of no client", "PATCH", "/v1/limit/client", "{}", 400, "must be given once"},
		{"limit of two tags", "PATCH", "/v1/limit/tag?tag=a&tag=b", "{}", 400, "must be given once"},
		{"limit with an unknown field", "PATCH", "/v1/limit/tag?tag=a", `{"max":"1"}`, 400, "unknown field"},
		{"drain with a body", "POST", "/v1/drain", `{"delay":"30s"}`, 400, "must be empty"},
		{"drain with another parameter", "POST", "/v1/drain?wait=30s", "", 400, "the only one is delay"},
		{"drain with two delays", "POST", "/v1/drain?delay=1s&delay=2s", "", 400, "the only one is delay"},
		{"drain with an empty delay", "POST", "/v1/drain?delay=", "", 400, "must be a duration from 0s to 10m"},
		{"drain with a negative delay", "POST", "/v1/drain?delay=-1s", "", 400, "must be a duration from 0s to 10m"},
		{"drain with a long delay", "POST", "/v1/drain?delay=11m", "", 400, "must be at most 10m"},
		{"n is 0", "POST", "/v1/next?tag=x&n=0", "", 400, "must be 1 to 100000"},
		{"n is too large", "POST", "/v1/next?tag=x&n=100001", "", 400, "must be 1 to 100000"},
		{"n is missing", "POST", "/v1/next?tag=x", "", 400, "must be 1 to 100000"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://leaf"+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != tc.status || !strings.Contains(string(body), tc.text) {
				t.Errorf("got %d %s, want %d and %q", resp.StatusCode, body, tc.status, tc.text)
			}
		})
	}
}
