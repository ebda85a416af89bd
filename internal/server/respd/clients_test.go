package respd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/segment"
)

// The tests of this file run the client libraries that people have, against the real
// engine. A short step makes their batches cross the ends of ranges.

const password = "s3cret"

// engineServer runs a server on the segment engine with the tag "order", whose client
// must show the password. Its IDs of snowflake mode begin at 2^62.
func engineServer(t *testing.T) *respd.Server {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	store := memory.New()
	if err := store.Create(t.Context(), segment.NewRow{Tag: "order", Start: 1, Step: 777}); err != nil {
		t.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID()})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return start(t, quiet(respd.Config{
		Access: &gate{token: password, issuers: leaf.Issuers{Segment: engine, Snowflake: &largeIDs{id: 1 << 62}, Sequence: newEntities()}},
		Times:  servertest.Times(func(id int64) (idtime.Decoded, error) { return idtime.Decoded{UnixMilli: id}, nil }),
	}))
}

// largeIDs is an Issuer of IDs that a float64 would round.
type largeIDs struct {
	mu sync.Mutex
	id int64
}

func (l *largeIDs) Next(ctx context.Context, tag string) (int64, error) {
	r, err := l.NextN(ctx, tag, 1)
	return r[0].Lo, err
}

func (l *largeIDs) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lo := l.id
	l.id += int64(n)
	return []leaf.Range{{Lo: lo, Hi: l.id}}, nil
}

// program returns the path of a program that works with args, else it skips the test,
// and with CI=true fails it.
func program(t *testing.T, name, debian string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: runs %s; run make test", name)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		var out []byte
		if out, err = command(t, path, args...).CombinedOutput(); err != nil {
			err = fmt.Errorf("%s %q: %w: %s", name, args, err, out)
		}
	}
	if err == nil {
		return path
	}
	text := fmt.Sprintf("%v: install the Debian packages %s", err, debian)
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI=true and %s", text)
	}
	t.Skipf("NOT TESTED: %s", text)
	return ""
}

// command is exec.Command, with three minutes to end. Debian's modules for Node.js stand
// where an own build of it does not look.
func command(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "NODE_PATH=/usr/share/nodejs")
	return cmd
}

// output runs a command, with input, and returns what it prints.
func output(t *testing.T, input, path string, args ...string) string {
	t.Helper()
	cmd := command(t, path, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(path), args, err, out, stderr.Bytes())
	}
	return string(out)
}

// ids is a set that knows who has each.
type ids map[int64]string

// take notes IDs, and complains of one that was there.
func (s ids) take(t *testing.T, who string, taken ...int64) {
	t.Helper()
	for _, id := range taken {
		if other, ok := s[id]; ok {
			t.Errorf("ID %d for %s and for %s", id, other, who)
		}
		s[id] = who
	}
}

// lines takes a number per line.
func (s ids) lines(t *testing.T, who, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		s.take(t, who, id)
	}
}

func (s ids) wantCount(t *testing.T, n int) {
	t.Helper()
	if len(s) != n {
		t.Errorf("%d different IDs, want %d", len(s), n)
	}
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	cli := program(t, "redis-cli", "redis-tools", "--version")
	host, port, err := net.SplitHostPort(engineServer(t).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	base := []string{"-h", host, "-p", port}
	ask := func(input string, args ...string) string {
		return output(t, input, cli, append(append(base, "--no-auth-warning", "-a", password), args...)...)
	}
	seen := ids{}
	for _, protocol := range []string{"-2", "-3"} {
		seen.lines(t, "one", ask("", protocol, "INCR", "order"))
		seen.lines(t, "typed", ask(strings.Repeat("INCR order\n", 500), protocol))
		seen.lines(t, "array", ask("", protocol, "LEAF.NEXT", "order", "COUNT", "1000"))
		seen.lines(t, "snowflake", ask("", protocol, "LEAF.SNOWFLAKE", "COUNT", "10", "TEXT"))
	}
	seen.wantCount(t, 2*(1+500+1000+10))

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"PING"}, "PONG\n"},
		{[]string{"-3", "LEAF.DECODE", "5"}, "timestamp 5\nworkerId 0\nsequenceId 0\n"},
		{[]string{"HINCRBY", "chat", "user-7", "5"}, "5\n"},
		{[]string{"HINCRBY", "chat", "user-7", "1"}, "6\n"},
		{[]string{"HELP", "HINCRBY"}, "\n  \x1b[1mHINCRBY\x1b[0m \x1b[90msequence entity n\x1b[0m\n"},
		{[]string{"-n", "0", "ECHO", "a b"}, "a b\n"},
		{[]string{"GET", "order"}, "ERR unknown command 'GET', with args beginning with: 'order' \n\n"},
		{[]string{"INCR", "none"}, "UNKNOWNTAG leaf: unknown tag: \"none\"\n\n"},
		{[]string{"HELP", "INCRBY"}, "\n  \x1b[1mINCRBY\x1b[0m \x1b[90mtag n\x1b[0m\n  \x1b[33msummary:\x1b[0m The last of n consecutive IDs of a tag.\n"},
		{[]string{"HELP", "LEAF.NEXT"}, "\n  \x1b[1mLEAF.NEXT\x1b[0m \x1b[90mtag [COUNT count] [TEXT] [FORMAT format]\x1b[0m\n"},
	} {
		if got := strings.ReplaceAll(ask("", tt.args...), "\r\n", "\n"); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.args, got, tt.want)
		}
	}
	if got := ask("", "INFO", "server"); !strings.Contains(got, "redis_version:7.0.15\r\n") {
		t.Errorf("INFO: %q", got)
	}
	if got := ask(strings.Repeat(request("INCR", "order"), 2000), "--pipe"); !strings.Contains(got, "errors: 0, replies: 2000") {
		t.Errorf("--pipe: %q", got)
	}
	if got := output(t, "", cli, append(base, "INCR", "order")...); !strings.HasPrefix(got, "NOAUTH Authentication required.") {
		t.Errorf("without a password: %q", got)
	}
	if got := output(t, "", cli, append(base, "--user", "billing", "--pass", "wrong", "--no-auth-warning", "INCR", "order")...); !strings.Contains(got, "NOAUTH") {
		t.Errorf("with a wrong password: %q", got)
	}
}

func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	benchmark := program(t, "redis-benchmark", "redis-tools", "--version")
	s := engineServer(t)
	host, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, pipeline := range []string{"1", "16", "64"} {
		for _, protocol := range [][]string{nil, {"-3"}} {
			out := output(t, "", benchmark, append(append([]string{"-h", host, "-p", port, "-a", password, "-c", "50", "-n", "6400", "-P", pipeline, "--csv"}, protocol...),
				"INCR", "order")...)
			if !strings.Contains(out, `"INCR order",`) {
				t.Errorf("-P %s %q: %q", pipeline, protocol, out)
			}
		}
	}
	// Each request took one ID and no more: the next one says how many there were.
	c := dial(t, s)
	c.ask("+OK\r\n", "AUTH", password)
	c.ask(":38401\r\n", "INCR", "order")
	if got := s.Stats().Errors; got > 12 { // CONFIG GET, which it asks for before each run
		t.Errorf("%d errors", got)
	}
}

func TestGoRedis(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := engineServer(t)
			rdb := redis.NewClient(&redis.Options{
				Addr: s.Addr().String(), Protocol: protocol, Username: "billing", Password: password, ClientName: "go", PoolSize: 8, MaxRetries: -1,
			})
			defer rdb.Close()
			seen := ids{}
			var mu sync.Mutex
			var group sync.WaitGroup
			const callers = 16
			for range callers {
				group.Go(func() {
					taken, err := takeWithGoRedis(ctx, rdb)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					seen.take(t, "a caller", taken...)
				})
			}
			group.Wait()
			seen.wantCount(t, callers*(50+10+100+20+5))

			if name, err := rdb.ClientGetName(ctx).Result(); err != nil || name != "go" {
				t.Errorf("CLIENT GETNAME: %q, %v", name, err)
			}
			if text, err := rdb.Info(ctx).Result(); err != nil || !strings.Contains(text, "redis_version:7.0.15\r\n") {
				t.Errorf("INFO: %q, %v", text, err)
			}
			if all, err := rdb.Command(ctx).Result(); err != nil || all["incr"] == nil || all["incr"].FirstKeyPos != 1 {
				t.Errorf("COMMAND: %v, %v", all["incr"], err)
			}
			if err := rdb.Incr(ctx, "none").Err(); err == nil || !strings.HasPrefix(err.Error(), "UNKNOWNTAG ") {
				t.Errorf("an unknown tag: %v", err)
			}
			if err := rdb.Set(ctx, "order", 1, 0).Err(); err == nil || !strings.Contains(err.Error(), "IDs only grow") {
				t.Errorf("SET: %v", err)
			}
			numbers, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				return errors.Join(p.HIncrBy(ctx, "chat", "7", 1).Err(), p.HIncrBy(ctx, "chat", "7", 10).Err(), p.HIncrBy(ctx, "chat", "8", 1).Err())
			})
			if err != nil {
				t.Fatalf("HINCRBY: %v", err)
			}
			for i, want := range []int64{1, 11, 1} {
				if got := numbers[i].(*redis.IntCmd).Val(); got != want {
					t.Errorf("HINCRBY %d: %d, want %d", i, got, want)
				}
			}
			before := rdb.Incr(ctx, "order").Val()
			if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
				return errors.Join(p.Incr(ctx, "order").Err(), p.Incr(ctx, "order").Err())
			}); err == nil || !strings.Contains(err.Error(), "MULTI is refused") {
				t.Errorf("a transaction: %v", err)
			}
			if after, err := rdb.Incr(ctx, "order").Result(); err != nil || after != before+1 {
				t.Errorf("after a refused transaction: %d, %v, want %d", after, err, before+1)
			}
			for _, wrong := range []string{"", "wrong"} {
				stranger := redis.NewClient(&redis.Options{Addr: s.Addr().String(), Protocol: protocol, Password: wrong, MaxRetries: -1})
				if err := stranger.Incr(ctx, "order").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") && !strings.HasPrefix(err.Error(), "WRONGPASS") {
					t.Errorf("with the password %q: %v", wrong, err)
				}
				stranger.Close()
			}
		})
	}
}

// takeWithGoRedis takes IDs in all ways.
func takeWithGoRedis(ctx context.Context, rdb *redis.Client) (taken []int64, err error) {
	for range 50 {
		id, err := rdb.Incr(ctx, "order").Result()
		if err != nil {
			return taken, err
		}
		taken = append(taken, id)
	}
	last, err := rdb.IncrBy(ctx, "order", 10).Result()
	if err != nil {
		return taken, err
	}
	for id := last - 9; id <= last; id++ {
		taken = append(taken, id)
	}
	results, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 100 {
			p.Incr(ctx, "order")
		}
		return nil
	})
	for _, r := range results {
		id, one := r.(*redis.IntCmd).Result()
		taken, err = append(taken, id), errors.Join(err, one)
	}
	many, errMany := rdb.Do(ctx, "LEAF.NEXT", "order", "COUNT", 20).Int64Slice()
	large, errLarge := rdb.Do(ctx, "LEAF.SNOWFLAKE", "COUNT", 5).Int64Slice()
	return append(append(taken, many...), large...), errors.Join(err, errMany, errLarge)
}

func TestPython(t *testing.T) {
	t.Parallel()
	python := program(t, "/usr/bin/python3", "python3 python3-redis", "-c", "import redis")
	host, port, err := net.SplitHostPort(engineServer(t).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	seen := ids{}
	seen.lines(t, "python", output(t, "", python, "testdata/client.py", host, port, password))
	seen.wantCount(t, 8*(100+10+100+50+1)+101)
}

func TestNode(t *testing.T) {
	t.Parallel()
	node := program(t, "node", "nodejs node-redis", "-e", "require('redis')")
	host, port, err := net.SplitHostPort(engineServer(t).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	seen := ids{}
	seen.lines(t, "node", output(t, "", node, "testdata/client.js", host, port, password))
	seen.wantCount(t, 1000+10+50+500+100)
}
