package world_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// withDatabase runs f in a process with a database of one row, tag "a", from 1, step 10.
func withDatabase(t *testing.T, f func(p *sched.Process, d *world.Database, c *world.DatabaseClient)) *world.Faults {
	t.Helper()
	s := sched.New(1)
	defer s.End()
	faults := &world.Faults{}
	d := world.NewDatabase(s, "db", faults)
	d.Put(world.RowCreated, segment.Row{Tag: "a", MaxID: 1, Step: 10}, false)
	c := d.Client()
	p := s.NewMachine("n", begin).Boot()
	ended := false
	p.Go(func() {
		f(p, d, c)
		ended = true
	})
	s.Run(time.Hour)
	if !ended {
		t.Fatal("it did not end")
	}
	return faults
}

func reserve(p *sched.Process, c *world.DatabaseClient) (leaf.Range, error) {
	ctx, cancel := p.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	res, err := c.For(p).Reserve(ctx, segment.Request{Tag: "a", Step: 10, Length: 10, Min: 1, Max: 100})
	return res.Range, err
}

// wants fails the test unless the next range starts at lo.
func wants(t *testing.T, p *sched.Process, c *world.DatabaseClient, lo int64) {
	t.Helper()
	if r, err := reserve(p, c); err != nil || r != (leaf.Range{Lo: lo, Hi: lo + 10}) {
		t.Errorf("got %v, %v, want it from %d", r, err, lo)
	}
}

func TestDatabaseForgets(t *testing.T) {
	withDatabase(t, func(p *sched.Process, d *world.Database, c *world.DatabaseClient) {
		wants(t, p, c, 1)
		p.Sleep(time.Minute)
		wants(t, p, c, 11)
		wants(t, p, c, 21)
		d.LoseLast(world.FailoverLoses, 1)
		wants(t, p, c, 21)
		d.GoBack(world.Restored, d.Before(30*time.Second))
		wants(t, p, c, 11)
		d.LoseLast(world.Failover, 0)
		wants(t, p, c, 21)
		if used, tally := d.Used("a"), d.Tally("a"); used != 31 || tally.Reserved != 60 {
			t.Errorf("used to %d, %+v", used, tally)
		}
		d.LoseLast(world.FailoverLoses, 1000)
		if _, err := reserve(p, c); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("a database without its first commit: %v", err)
		}
	})
}

func TestSplitBrain(t *testing.T) {
	withDatabase(t, func(p *sched.Process, d *world.Database, c *world.DatabaseClient) {
		other := d.Client()
		wants(t, p, c, 1)
		d.Split(1)
		other.Switch(true)
		wants(t, p, c, 11)
		wants(t, p, other, 1)
		wants(t, p, c, 21)
		if low, _ := d.MaxID("a"); low != 11 {
			t.Errorf("the lower side is at %d", low)
		}
		d.Join(1)
		wants(t, p, c, 11)
		wants(t, p, other, 21)
	})
}

func TestDatabaseTroubles(t *testing.T) {
	faults := withDatabase(t, func(p *sched.Process, d *world.Database, c *world.DatabaseClient) {
		d.CommitError = 1
		if _, err := reserve(p, c); !errors.Is(err, world.ErrCommit) {
			t.Errorf("commit error: %v", err)
		}
		d.CommitError = 0
		wants(t, p, c, 11)

		d.Lock("a", time.Second)
		wants(t, p, c, 21)
		d.Lock("a", time.Minute)
		if _, err := reserve(p, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("locked row: %v", err)
		}
		p.Sleep(2 * time.Minute)

		d.SetDown(true)
		if _, err := reserve(p, c); !errors.Is(err, world.ErrUnreachable) {
			t.Errorf("down: %v", err)
		}
		d.SetDown(false)

		d.Hang = 1
		longest := time.Duration(0)
		for range 20 {
			begin := p.Elapsed()
			_, _ = reserve(p, c)
			longest = max(longest, p.Elapsed()-begin)
		}
		if longest < 10*time.Second {
			t.Errorf("no call hung for more than %v", longest)
		}
	})
	for _, k := range []world.Kind{world.CommitError, world.RowLocked, world.ServerDown, world.CallHangs} {
		if faults.Count(k) == 0 {
			t.Errorf("%q is not counted", k)
		}
	}
}

// TestFence holds the model to the contract where it matters here: versions, missing
// entries, incarnations; and it forgets as told.
func TestFence(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	f := world.NewFence(s, nil)
	p := s.NewMachine("n", begin).Boot()
	ended := false
	p.Go(func() {
		defer func() { ended = true }()
		ctx := context.Background()
		way := &world.Link{Server: f.Server}
		c := f.For(way, p)
		opened := -1
		c.Opened = func(losses int) { opened = losses }
		space, created, err := c.Open(ctx)
		if err != nil || !created || space == "" {
			t.Errorf("open: %q, %v, %v", space, created, err)
		}
		if _, ok, err := c.Read(ctx, space, "a"); ok || err != nil {
			t.Errorf("missing entry: %v, %v", ok, err)
		}
		one, err := c.Swap(ctx, space, "a", nil, 10)
		if err != nil {
			t.Error(err)
		}
		p.Sleep(time.Minute)
		f.Next = func(l *world.Link) { l.HoldReply = time.Second }
		asked := s.Elapsed()
		two, err := c.Swap(ctx, space, "a", &one, 20)
		if took := s.Elapsed() - asked; took < time.Second || f.Next != nil || way.HoldReply != 0 {
			t.Errorf("a reply that is held for a second came after %v", took)
		}
		if err != nil || two.Version <= one.Version {
			t.Errorf("%+v after %+v, %v", two, one, err)
		}
		for name, old := range map[string]*fence.Entry{"old version": &one, "exists": nil} {
			if _, err := c.Swap(ctx, space, "a", old, 30); !errors.Is(err, fence.ErrMoved) {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.Restore(30 * time.Second)
		if e, ok, err := c.Read(ctx, space, "a"); e != one || !ok || err != nil || f.Used("a") != 20 {
			t.Errorf("restored: %+v, %v, %v", e, ok, err)
		}
		if f.Losses() != 1 || f.Since("a") != 10 {
			t.Errorf("restored: %d losses, %d since; want 1 and 10", f.Losses(), f.Since("a"))
		}
		f.Wipe()
		if _, _, err := c.Read(ctx, space, "a"); !errors.Is(err, fence.ErrReplaced) {
			t.Errorf("wiped: %v", err)
		}
		if next, created, err := c.Open(ctx); next == space || !created || err != nil || opened != 2 || f.Since("a") != 0 {
			t.Errorf("open anew: %q, %v, %v, after %d losses, %d since", next, created, err, opened, f.Since("a"))
		}
	})
	s.Run(time.Hour)
	if !ended {
		t.Error("it did not end")
	}
}
