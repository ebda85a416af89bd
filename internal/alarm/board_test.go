package alarm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/alarm"
)

// output is a log that can be made to block.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	block chan struct{} // nil: it does not
}

func (o *output) Write(p []byte) (int, error) {
	if o.block != nil {
		<-o.block
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// lines returns what was written so far, without the time.
func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(strings.TrimSuffix(o.text.String(), "\n"), "\n")
}

func (o *output) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func board(t *testing.T, cfg alarm.Config) *alarm.Board {
	t.Helper()
	b, err := alarm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func regress(tag, text string) leaf.Alarm {
	return leaf.Alarm{Code: leaf.AlarmRegress, Subject: tag, Text: text, Do: "repair it"}
}

// regresses returns the counters of the code that the tests use.
func regresses(b *alarm.Board) alarm.Count {
	for _, c := range b.Counts() {
		if c.Code == leaf.AlarmRegress {
			return c
		}
	}
	return alarm.Count{}
}

// TestLife: an alarm begins, changes its text, ends, begins again.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{}
		b := board(t, alarm.Config{Logger: out.logger()})
		b.Clear(leaf.AlarmRegress, "order") // not active: nothing
		b.Clear("unheard", "order")
		b.Raise(regress("order", "first"))
		b.Raise(regress("order", "first"))
		b.Raise(regress("order", "second"))
		if got, want := b.Active(), []leaf.Alarm{regress("order", "second")}; !cmp.Equal(got, want) {
			t.Errorf("active %+v, want %+v", got, want)
		}
		time.Sleep(time.Minute)
		b.Raise(regress("order", "second")) // unchanged: no line
		b.Raise(regress("order", "third"))
		b.Raise(regress("order", "fourth"))
		b.Clear(leaf.AlarmRegress, "order")
		b.Clear(leaf.AlarmRegress, "order")
		if got := b.Active(); got != nil {
			t.Errorf("active %+v after the end", got)
		}
		b.Raise(leaf.Alarm{Code: leaf.AlarmStore, Subject: "db", Text: "down"})
		b.Raise(regress("order", "again"))
		b.Raise(regress("cart", "too"))
		synctest.Wait()
		want := []string{
			`level=ERROR msg=first code=regress subject=order do="repair it"`,
			`level=ERROR msg=third code=regress subject=order do="repair it"`,
			`level=INFO msg="alarm ended: fourth" code=regress subject=order`,
			`level=ERROR msg=down code=store subject=db`,
			`level=ERROR msg=again code=regress subject=order do="repair it"`,
			`level=ERROR msg=too code=regress subject=cart do="repair it"`,
		}
		if diff := cmp.Diff(want, out.lines()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(alarm.Count{Code: leaf.AlarmRegress, Raised: 3, Active: 2}, regresses(b)); diff != "" {
			t.Error(diff)
		}
		sorted := []leaf.Alarm{regress("cart", "too"), regress("order", "again"), {Code: leaf.AlarmStore, Subject: "db", Text: "down"}}
		if diff := cmp.Diff(sorted, b.Active()); diff != "" {
			t.Errorf("active (-want +got):\n%s", diff)
		}
	})
}

// TestStorm: 100,000 alarms of one code at once stay bounded in memory, log and
// list, and the counters stay exact, also while the storm ends.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, named = 100_000, 1000
		out := &output{}
		b := board(t, alarm.Config{Logger: out.logger()})
		for round := range 2 { // the second round repeats the first
			for i := range n {
				b.Raise(regress(fmt.Sprint("tag-", i), fmt.Sprint("round ", round)))
			}
			if c := regresses(b); c.Raised != n || c.Active != n {
				t.Fatalf("round %d: %+v, want %d of both", round, c, n)
			}
		}
		all := b.Active()
		if len(all) != named+1 || all[0].Subject != alarm.Any || !strings.Contains(all[0].Text, strconv.Itoa(n-named)) {
			t.Fatalf("%d alarms in the list, the first is %+v", len(all), all[0])
		}
		b.Raise(leaf.Alarm{Code: leaf.AlarmStore, Subject: "db", Text: "another code is heard"})
		synctest.Wait()
		lines := out.lines()
		if len(lines) > 110 || !strings.Contains(lines[len(lines)-1], "another code is heard") {
			t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
		}
		for i := range n / 2 { // those that are named end first
			b.Clear(leaf.AlarmRegress, fmt.Sprint("tag-", i))
		}
		for i := range n {
			b.Raise(regress(fmt.Sprint("tag-", n-1-i), "after")) // some that were counted get a place
		}
		if c := regresses(b); c.Active != n || c.Raised != n+n/2 {
			t.Errorf("%+v after half of it ended and began again", c)
		}
		for i := range n {
			b.Clear(leaf.AlarmRegress, fmt.Sprint("tag-", i))
		}
		if c := regresses(b); c.Active != 0 || len(b.Active()) != 1 {
			t.Errorf("%+v after the storm, active %+v", c, b.Active())
		}
		time.Sleep(time.Minute)
		b.Raise(regress("order", "next minute"))
		synctest.Wait()
		if tail := strings.Join(out.lines()[len(lines):], "\n"); !strings.Contains(tail, "lines of alarms were left out") || !strings.Contains(tail, "next minute") {
			t.Errorf("lines of the next minute:\n%s", tail)
		}
	})
}

// TestRaiseNeverBlocks although the log does; Close is bounded by its context.
func TestRaiseNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{block: make(chan struct{})}
		b, err := alarm.New(alarm.Config{Logger: out.logger()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20_000 {
			b.Raise(leaf.Alarm{Code: fmt.Sprint("code-", i%300), Subject: fmt.Sprint(i), Text: "x"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Close = %v after %v", err, time.Since(start))
		}
		close(out.block)
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		b.Raise(regress("late", "after the end"))
		if len(b.Active()) == 0 {
			t.Error("an alarm after Close is not in the list")
		}
	})
}

// TestConcurrent is for the race detector: the sum of many begins and ends is zero, also of
// alarms that are counted only.
func TestConcurrent(t *testing.T) {
	b := board(t, alarm.Config{})
	const stay = 995 // of 1000 that have names
	for i := range stay {
		b.Raise(regress(fmt.Sprint("stays-", i), "x"))
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 100 {
				tag := fmt.Sprint(i, "-", n%20)
				b.Raise(regress(tag, "x"))
				_ = b.Active()
				b.Clear(leaf.AlarmRegress, tag)
			}
		})
	}
	all.Wait()
	if c := regresses(b); c.Active != stay || c.Raised != stay+8*100 {
		t.Errorf("%+v", c)
	}
}

// TestCountsKnowEveryCode reads the constants of package leaf.
func TestCountsKnowEveryCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../alarm.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range board(t, alarm.Config{}).Counts() {
		known[c.Code] = true
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Alarm") {
			return true
		}
		declared++
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil || !known[code] {
			t.Errorf("%s: code %q has no counter at the start (%v)", spec.Names[0].Name, code, err)
		}
		return true
	})
	if declared < 9 || declared != len(known) {
		t.Errorf("%d codes declared, %d known", declared, len(known))
	}
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]alarm.Config{
		"webhook url":     {Webhook: alarm.Webhook{URL: "hooks.example/x"}},
		"webhook url:":    {Webhook: alarm.Webhook{URL: "ftp://secret-token@hooks.example"}},
		"webhook timeout": {Webhook: alarm.Webhook{URL: "http://h", Timeout: time.Hour}},
	} {
		_, err := alarm.New(cfg)
		if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
