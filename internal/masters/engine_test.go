package masters_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/masters"
	"github.com/leaf-idgen/leaf/segment"
)

// database is a store that a test takes away: calls then hang until their deadline.
type database struct {
	*memory.Store
	mu   sync.Mutex
	gone bool
}

func (d *database) take(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = away
}

func (d *database) hang(ctx context.Context) error {
	d.mu.Lock()
	gone := d.gone
	d.mu.Unlock()
	if gone {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (d *database) Bind(ctx context.Context, b segment.Binding) error {
	if err := d.hang(ctx); err != nil {
		return err
	}
	return d.Store.Bind(ctx, b)
}

func (d *database) Rows(ctx context.Context) ([]segment.Row, error) {
	if err := d.hang(ctx); err != nil {
		return nil, err
	}
	return d.Store.Rows(ctx)
}

func (d *database) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	if err := d.hang(ctx); err != nil {
		return segment.Reservation{}, err
	}
	return d.Store.Reserve(ctx, req)
}

// alarms fails the test if a node says that it rejects callers.
type alarms struct{ t *testing.T }

func (a alarms) Raise(x leaf.Alarm) {
	if x.Code == leaf.AlarmExhausted {
		a.t.Errorf("alarm: %s", x.Text)
	}
}

func (alarms) Clear(string, string) {}

// TestOneDatabaseAtATime: two nodes, one near each database, and callers with a deadline of 5 s. Each database is
// away for a while, one of them already when the nodes start. No call fails, no alarm says that one does, and no ID
// is issued twice.
func TestOneDatabaseAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		west, east := &database{Store: memory.New()}, &database{Store: memory.New()}
		rule, err := segment.ParseTagRule("orders=west,east*1000")
		if err != nil {
			t.Fatal(err)
		}
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "west", Store: west}, {Name: "east", Store: east}}, []segment.TagRule{rule})
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range []*database{west, east} {
			d.Put(segment.Row{Tag: router.Masters("orders").Part("orders", i), MaxID: 1, Step: 100, Options: segment.Options{FixedStep: true}})
			if err := d.RecordRule(router.Binding(i)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var mu sync.Mutex
		seen, ofEast := map[int64]bool{}, 0
		west.take(true)
		for _, near := range []string{"west", "east"} {
			x := startNode(t, router, near)
			for range 2 {
				all.Go(func() {
					for ctx.Err() == nil {
						ids, err := issue(ctx, x)
						if err != nil {
							t.Errorf("a call failed: %v", err)
							return
						}
						mu.Lock()
						for id := range leaf.IDs(ids) {
							if seen[id] {
								t.Errorf("ID %d was issued twice", id)
							}
							seen[id] = true
							if at, _ := router.Masters("orders").Of(id); at == 1 {
								ofEast++
							}
						}
						mu.Unlock()
						time.Sleep(40 * time.Millisecond)
					}
				})
			}
		}
		for _, gone := range []*database{west, east, west} {
			gone.take(true)
			time.Sleep(4 * time.Second)
			gone.take(false)
			time.Sleep(4 * time.Second)
		}
		stop()
		all.Wait()
		if ofWest := len(seen) - ofEast; ofWest < len(seen)/4 || ofEast < len(seen)/4 {
			t.Errorf("%d IDs are of the database west, and %d of east: a node near each, with the same time away", ofWest, ofEast)
		}
	})
}

// issue takes an ID, or sometimes a batch.
func issue(ctx context.Context, x *masters.Issuer) ([]leaf.Range, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if time.Now().UnixMilli()%7 == 0 {
		return x.NextN(ctx, "orders", 150)
	}
	id, err := x.Next(ctx, "orders")
	return []leaf.Range{{Lo: id, Hi: id + 1}}, err
}

func startNode(t *testing.T, router *segment.Router, near string) *masters.Issuer {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	engine, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID(), LoadTimeout: time.Second, MaxWait: 5 * time.Second, Alarms: alarms{t}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(engine.Close(context.Background()), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, err := masters.New(engine, router, masters.Config{Near: []string{near}, MaxWait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return x
}
