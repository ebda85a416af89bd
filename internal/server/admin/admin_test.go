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
	"strings"
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

// fake records the arguments of the last call and answers tag or err.
type fake struct {
	got []any
	tag manage.Tag
	err error
}

func (f *fake) Do(_ context.Context, request any) (any, error) {
	switch q := request.(type) {
	case manage.GetInfo:
		return manage.Info{PID: 7, Stores: []string{"sqlite:x"}, Ready: true}, f.err
	case manage.ReloadConfig:
		return reload, f.err
	case manage.PlanReload:
		f.got = []any{"plan"}
		return reload, f.err
	case manage.GetStatus:
		f.got = []any{q.Tags}
		return status, f.err
	case manage.ListTags:
		return []manage.Tag{f.tag}, f.err
	case manage.GetTag:
		f.got = []any{q.Name}
		return f.tag, f.err
	case manage.CreateTag:
		f.got = []any{q.NewRow}
		return f.tag, f.err
	case manage.SetTag:
		f.got = []any{q.Name, q.Change}
		return f.tag, f.err
	case manage.DeleteTag:
		f.got = []any{q.Name}
	case manage.RepairTag:
		f.got = []any{q.Name, q.Above}
		return manage.Repair{Tag: f.tag, Plan: repairPlan}, f.err
	case manage.PlanRepair:
		f.got = []any{"plan", q.Name, q.Above}
		return repairPlan, f.err
	case manage.ListLimits:
		return limits, f.err
	case manage.SetTagLimit:
		f.got = []any{"tag", q.Name, q.LimitChange}
		return limits.Limits[0], f.err
	case manage.SetClientLimit:
		f.got = []any{"client", q.Name, q.LimitChange}
		return limits.Limits[1], f.err
	case manage.Next:
		f.got = []any{q.Tag, q.N}
		return manage.Issued{Ranges: []leaf.Range{{Lo: 1, Hi: 1 + int64(q.N)}}}, f.err
	case manage.NextSnowflake:
		f.got = []any{q.N}
		return manage.Issued{Ranges: []leaf.Range{{Lo: math.MaxInt64 - int64(q.N), Hi: math.MaxInt64}}}, f.err
	case manage.Drain:
		f.got = []any{q.Delay}
	case manage.ListNodes:
		return nodes, f.err
	case manage.SetWeight:
		f.got = []any{q.Weight}
		return nodes.Nodes[0], f.err
	case manage.ListWorkers:
		return workers, f.err
	case manage.ReleaseWorker:
		f.got = []any{q.Number}
	case manage.InitWorkers:
	case manage.ConfirmClock:
		return manage.ClockReply{Now: time.Unix(1, 0).UTC()}, f.err
	default:
		return nil, fmt.Errorf("%T is unknown", request)
	}
	return manage.None{}, f.err
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
func start(t *testing.T, c manage.Caller) (*admin.Client, string) {
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
	f := &fake{tag: tag}
	c, _ := start(t, f)
	maxID, step, fixed := int64(big), int64(5), false
	change := segment.Change{MaxID: &maxID, Step: &step, FixedStep: &fixed}
	limitChange := manage.LimitChange{Rate: &maxID, Quota: &step, Blocked: &fixed}
	newTag := segment.NewRow{Tag: strange, Start: big, Step: 7, Options: segment.Options{FixedStep: true}}
	ctx := t.Context()

	cases := []struct {
		name  string
		call  func() (any, error)
		args  []any
		reply any
	}{
		{"info", func() (any, error) { return c.Info(ctx) }, nil, manage.Info{PID: 7, Stores: []string{"sqlite:x"}, Ready: true}},
		{"tags", func() (any, error) { return c.Tags(ctx) }, nil, []manage.Tag{tag}},
		{"tag", func() (any, error) { return c.Tag(ctx, strange) }, []any{strange}, tag},
		{"tag dots", func() (any, error) { return c.Tag(ctx, "..") }, []any{".."}, tag},
		{"create", func() (any, error) { return c.CreateTag(ctx, newTag) }, []any{newTag}, tag},
		{"set", func() (any, error) { return c.SetTag(ctx, strange, change) }, []any{strange, change}, tag},
		{"set nothing", func() (any, error) { return c.SetTag(ctx, "x", segment.Change{}) }, []any{"x", segment.Change{}}, tag},
		{"delete", func() (any, error) { return nil, c.DeleteTag(ctx, strange) }, []any{strange}, nil},
		{"repair", func() (any, error) { return c.RepairTag(ctx, strange, big) }, []any{strange, int64(big)}, manage.Repair{Tag: tag, Plan: repairPlan}},
		{"plan a repair", func() (any, error) { return c.PlanRepair(ctx, strange, big) }, []any{"plan", strange, int64(big)}, repairPlan},
		{"limits", func() (any, error) { return c.Limits(ctx) }, nil, limits},
		{"limit a tag", func() (any, error) { return c.SetTagLimit(ctx, strange, limitChange) }, []any{"tag", strange, limitChange}, limits.Limits[0]},
		{"limit a client", func() (any, error) { return c.SetClientLimit(ctx, strange, limitChange) }, []any{"client", strange, limitChange}, limits.Limits[1]},
		{"limit clients without a name", func() (any, error) { return c.SetClientLimit(ctx, "", manage.LimitChange{}) }, []any{"client", "", manage.LimitChange{}}, limits.Limits[1]},
		{"next", func() (any, error) { return c.Next(ctx, strange, 3) }, []any{strange, 3}, []leaf.Range{{Lo: 1, Hi: 4}}},
		{"next snowflake", func() (any, error) { return c.NextSnowflake(ctx, 3) }, []any{3}, []leaf.Range{{Lo: math.MaxInt64 - 3, Hi: math.MaxInt64}}},
		{"workers", func() (any, error) { return c.Workers(ctx) }, nil, workers},
		{"release", func() (any, error) { return nil, c.ReleaseWorker(ctx, 7) }, []any{int64(7)}, nil},
		{"init", func() (any, error) { return nil, c.InitWorkers(ctx) }, nil, nil},
		{"confirm clock", func() (any, error) { return c.ConfirmClock(ctx) }, nil, time.Unix(1, 0).UTC()},
		{"reload", func() (any, error) { return c.Reload(ctx) }, nil, reload},
		{"plan a reload", func() (any, error) { return c.PlanReload(ctx) }, []any{"plan"}, reload},
		{"status", func() (any, error) { return c.Status(ctx, 7) }, []any{7}, status},
		{"nodes", func() (any, error) { return c.Nodes(ctx) }, nil, nodes},
		{"weight", func() (any, error) { return c.SetWeight(ctx, 7) }, []any{7}, nodes.Nodes[0]},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			f.got = nil
			reply, err := tc.call()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.args, f.got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.reply, reply); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTextsThatAreNotUnicode do not leave the client: the node would read other ones.
func TestTextsThatAreNotUnicode(t *testing.T) {
	t.Parallel()
	f := &fake{}
	c, _ := start(t, f)
	text := "a\xff"
	_, created := c.CreateTag(t.Context(), segment.NewRow{Tag: text, Start: 1, Step: 1})
	_, described := c.CreateTag(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 1, Description: text})
	_, changed := c.SetTag(t.Context(), "a", segment.Change{Description: &text})
	for what, err := range map[string]error{"create": created, "create with a description": described, "set": changed} {
		if !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: %v; want ErrBadRequest", what, err)
		}
	}
	if f.got != nil {
		t.Errorf("the node was asked for %q", f.got)
	}
}

func TestErrorsKeepTheirSentinelAndText(t *testing.T) {
	t.Parallel()
	f := &fake{}
	c, _ := start(t, f)
	for _, class := range leaf.Classes() {
		if class.Err == nil {
			continue
		}
		f.err = fmt.Errorf("%w: tag %q, say why", class.Err, "x")
		_, err := c.Tag(t.Context(), "x")
		if !errors.Is(err, class.Err) || err.Error() != f.err.Error() {
			t.Errorf("%s: got %v, want %v", class.Code, err, f.err)
		}
	}
	f.err = errors.New("password is hunter2")
	if _, err := c.Tag(t.Context(), "x"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("internal cause: got %v, want an error without it", err)
	}
}

func TestNoNode(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := admin.NewClient(dir)
	if _, err := c.Info(t.Context()); !errors.Is(err, admin.ErrNoNode) {
		t.Errorf("no socket: got %v, want ErrNoNode", err)
	}
	leaveStaleSocket(t, filepath.Join(dir, "leaf.sock"))
	if _, err := c.Info(t.Context()); !errors.Is(err, admin.ErrNoNode) {
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
	if _, err := admin.NewClient(file).Info(t.Context()); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "must be a folder") {
		t.Errorf("a file: got %v, want ErrBadRequest", err)
	}
	if os.Getuid() == 0 {
		t.Skip("root may enter every folder")
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) //nolint:gosec // a folder
	if _, err := admin.NewClient(dir).Info(t.Context()); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "as the user that the node runs as") {
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
		if _, err := admin.NewClient(dir).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "choose a shorter --data-dir") {
			t.Errorf("client: got %v", err)
		}
	})
}

func TestRawRequestsAreBounded(t *testing.T) {
	t.Parallel()
	_, dir := start(t, &fake{})
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
