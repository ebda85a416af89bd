package proof_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/internal/test/echo"
)

const (
	// findTime is how long a client may take to find a node that is back: an ejection
	// is 2 s at most, and the check that follows takes 1 s at most.
	findTime = 4 * time.Second

	// standstill is how late an echo or a write to disk must be to excuse an error.
	standstill = 500 * time.Millisecond

	// hiccup is the same for requests that left the zone: a client that waits 100 ms
	// for one node asks another one, and a request takes longer than an echo.
	hiccup = 50 * time.Millisecond
)

// failure is an error that a caller got.
type failure struct {
	series   string
	from, to time.Time
	err      error
}

// judge looks at everything that the run has left.
func (c *callers) judge(t *testing.T, n *breaker) {
	t.Helper()
	if err := c.ids.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := idlog.Check(context.Background(), idlog.Options{AnyOrder: true}, c.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Duplicates {
		t.Errorf("%s: IDs given out twice: %+v", d.Key, d)
	}
	distinct := map[string]uint64{}
	for _, k := range report.Keys {
		distinct[k.Key] = k.Distinct
	}
	share := float64(c.remote) / float64(max(c.counted, 1))
	// Without the words for which cmd/summary would not run a failed test again.
	t.Logf("%v: %d calls, IDs %v; %d worker IDs; %d errors; faults %v; %d of %d requests left the zone (%.2f %%) while it lived; nodes were found after at most %v; the machine: %s",
		time.Since(n.began).Round(time.Millisecond), c.calls.Load(), distinct, len(c.workers), len(c.failures), n.came,
		c.remote, c.counted, 100*share, c.m.slowest.Round(time.Millisecond), c.machine)

	if c.calls.Load() < 1000 || len(distinct) != 4 || c.requests["b"] == 0 || c.counted < 200 {
		t.Errorf("%d calls, IDs %v, requests %v, %d counted: that proves nothing", c.calls.Load(), distinct, c.requests, c.counted)
	}
	for _, one := range c.clients {
		if seen := one.Stats().Violations; seen > 0 {
			t.Errorf("a client saw %d answers that repeat IDs or step back", seen)
		}
	}
	for _, kind := range kinds {
		if n.came[kind.name] == 0 {
			t.Errorf("no fault %q: nothing is proven about it", kind.name)
		}
	}
	c.judgeErrors(t, n.began)
	switch {
	case share < 0.01:
	case c.machine.stood(hiccup, n.began, time.Now()):
		t.Log("requests that left the zone are not judged: the machine was too busy")
	default:
		t.Errorf("%.2f %% of the requests left the zone, want less than 1 %%", 100*share)
	}
	if c.m.slowest > findTime && !c.machine.stood(standstill, n.began, time.Now()) {
		t.Errorf("a node that was back was found after %v, want at most %v", c.m.slowest, findTime)
	}
}

// judgeErrors wants none, but for those of calls during which the machine stood still. A
// machine that is starved all the time makes calls late one by one, without a standstill:
// there a few are allowed, and far fewer than a client makes that does not ask elsewhere.
func (c *callers) judgeErrors(t *testing.T, start time.Time) {
	t.Helper()
	excused := 0
	faults := slices.DeleteFunc(c.failures, func(f failure) bool {
		stood := c.machine.stood(standstill, f.from, f.to)
		if stood {
			excused++
		}
		return stood
	})
	if excused > 0 {
		t.Logf("%d errors are not judged: the machine stood still meanwhile", excused)
	}
	if few := int(c.calls.Load() / 200); len(faults) > 0 && len(faults) <= few && c.machine.starved(time.Since(start)) {
		t.Logf("%d errors, at most %d, are not judged: the machine was starved; the first: %v", len(faults), few, faults[0].err)
		return
	}
	if len(faults) == 0 {
		return
	}
	for _, f := range faults[:min(len(faults), 10)] {
		t.Errorf("a caller got an error: %s, asked %v after the start, after %v: %v", f.series, f.from.Sub(start).Round(time.Millisecond), f.to.Sub(f.from).Round(time.Millisecond), f.err)
	}
	t.Errorf("%d callers in all got an error", len(faults))
	for _, b := range c.m.all {
		t.Logf("log of %s around the first one:\n%s", b.name, b.logBetween(faults[0].from.Add(-4*time.Second), faults[0].to.Add(time.Second)))
	}
}

// logBetween returns the lines that the node wrote then.
func (n *node) logBetween(from, to time.Time) string {
	var found []string
	for line := range strings.Lines(n.text()) {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if at, err := time.Parse(time.RFC3339, stamp); err == nil && at.After(from) && at.Before(to) {
			found = append(found, line)
		}
	}
	return strings.Join(found[:min(len(found), 60)], "")
}

// machine is what the test knows of the machine that it shares with the nodes: echoes
// that are late, and a disk that does not take what must be on it before an ID goes out.
type machine struct {
	mu     sync.Mutex
	echoes echo.Machine
	worst  map[string]time.Duration
	stands []stand
}

// stand is a time in which nothing went on.
type stand struct{ from, to time.Time }

func (s stand) lasted() time.Duration { return s.to.Sub(s.from) }

// watchMachine watches until the test ends.
func watchMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{worst: map[string]time.Duration{}}
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	watchers.Go(func() {
		if err := echo.Watch(ctx, m.echoed); err != nil {
			t.Error(err)
		}
	})
	watchers.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
			from := time.Now()
			_, err := f.WriteAt([]byte{1}, 0)
			if err == nil {
				err = f.Sync()
			}
			if err != nil {
				t.Errorf("write to disk: %v", err)
				return
			}
			m.took("disk", from)
		}
	})
	t.Cleanup(func() {
		stop()
		watchers.Wait()
		_ = f.Close()
	})
	return m
}

// echoed notes an echo that has just come.
func (m *machine) echoed(due time.Time) {
	m.mu.Lock()
	m.echoes.Took(due)
	m.mu.Unlock()
	m.took("echo", due)
}

// starved reports whether the machine had too much to do in a run of that length.
func (m *machine) starved(ran time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.echoes.Starved(ran)
}

// took notes that something ends just now that could have ended at from.
func (m *machine) took(what string, from time.Time) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	late := now.Sub(from)
	m.worst[what] = max(m.worst[what], late)
	if late > hiccup {
		m.stands = append(m.stands, stand{from, now})
	}
}

// stood says whether the machine stood still for so long at any time between from and to.
func (m *machine) stood(long time.Duration, from, to time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.stands, func(s stand) bool { return s.lasted() > long && s.from.Before(to) && s.to.After(from) })
}

// String is for people.
func (m *machine) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	still := 0
	for _, s := range m.stands {
		if s.lasted() > standstill {
			still++
		}
	}
	return fmt.Sprintf("late by at most %v, %d times by more than %v, %d times by more than %v", m.worst, len(m.stands), hiccup, still, standstill)
}
