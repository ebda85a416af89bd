package manage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// site is a manage.StoreSite of which only the rows are used.
type site struct {
	manage.StoreSite
	catalog *manage.Catalog
}

func (s site) Catalog(context.Context) (*manage.Catalog, error) { return s.catalog, nil }
func (s site) Engine(context.Context) (*manage.Catalog, error)  { return s.catalog, nil }
func (s site) Limits(context.Context) (*manage.Catalog, error)  { return s.catalog, nil }

// silentFence does not answer once it is cut off.
type silentFence struct {
	*memory.Fence
	cut bool
}

func (f *silentFence) Open(ctx context.Context) (space string, created bool, err error) {
	if f.cut {
		return "", false, errors.New("connection refused")
	}
	return f.Fence.Open(ctx)
}

// node starts an engine with a data directory of its own, and returns it and its operations. fence may be nil.
func node(t *testing.T, s manage.Store, fence *silentFence) (*segment.Allocator, manage.Backend) {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := segment.Config{NodeID: dir.NodeID(), FixedStep: true, LoadTimeout: time.Second}
	if fence != nil {
		c.ClusterFence = fence
	}
	a := start(t, router, dir, c)
	return a, manage.On(site{catalog: &manage.Catalog{
		Stores: []manage.Store{s}, Router: router, Timeout: 5 * time.Second, Mark: a.Mark, ClusterEnd: a.ClusterEnd,
		Engine: func(context.Context) (*segment.Allocator, error) { return a, nil }, TagChanged: a.Refresh,
	}})
}

// start starts an engine, which is closed with its data directory.
func start(t *testing.T, router *segment.Router, dir *datadir.Dir, c segment.Config) *segment.Allocator {
	t.Helper()
	a, err := segment.New(router, dir, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(context.Background()), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestCreateBelowTheClusterFence: the row of a tag vanished, and a node that never served it
// creates it again. The board knows nothing, but the cluster fence does.
func TestCreateBelowTheClusterFence(t *testing.T) {
	t.Parallel()
	s, fence := memory.New(), &silentFence{Fence: memory.NewFence()}
	s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 10})
	a, _ := node(t, s, fence)
	if _, err := a.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	fresh, b := node(t, s, fence)
	row := segment.NewRow{Tag: "order", Start: 1, Step: 10}
	_, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: row})
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "exists") {
		t.Errorf("create a tag that exists: got %v", err)
	}
	s.Remove("order")
	_, err = manage.Ask(t.Context(), b, manage.CreateTag{NewRow: row})
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "use --start 11 or more. This start is above all that nodes have told.") {
		t.Fatalf("create below the cluster fence: got %v", err)
	}
	row.Start = 11
	if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: row}); err != nil {
		t.Fatal(err)
	}
	if id, err := fresh.Next(t.Context(), "order"); id != 11 || err != nil {
		t.Errorf("first ID %d, %v", id, err)
	}
	if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "new", Start: 1, Step: 10}}); err != nil {
		t.Errorf("create a tag that never was: %v", err)
	}
}

// TestCreateWithoutTheClusterFence: while the cluster fence does not answer, no tag is created.
func TestCreateWithoutTheClusterFence(t *testing.T) {
	t.Parallel()
	_, b := node(t, memory.New(), &silentFence{Fence: memory.NewFence(), cut: true})
	if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("got %v", err)
	}
}

// deaf is a store whose answers of nodes cannot be read while err is set.
type deaf struct {
	*memory.Store
	err error
}

func (d *deaf) Answers(ctx context.Context, tag string) ([]segment.Answer, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.Store.Answers(ctx, tag)
}

// TestCreateBesideASilentNode: a row vanished, and a node that has issued numbers of the tag does not answer. The refusal of a
// low start names no number. When the node answers, what the refusal says leads to one.
func TestCreateBesideASilentNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 10})
		a, b := node(t, s, nil)
		if _, err := a.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Remove("order")
		create := func(says string) {
			t.Helper()
			_, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}})
			if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want %q", err, says)
			}
		}
		plan := func(silent bool) {
			t.Helper()
			got, err := manage.Ask(t.Context(), b, manage.PlanRepair{Name: "order"})
			if err != nil || strings.Contains(got.Refused, "nodes do not answer: ghost") != silent {
				t.Errorf("plan %+v, %v; want a node that does not answer: %t", got, err, silent)
			}
		}
		if err := s.Enter(t.Context(), segment.Member{Node: "ghost", Process: 1}); err != nil {
			t.Fatal(err)
		}
		create("leaf tag repair TAG --plan says why. Once it names no node that does not answer, run this command again")
		plan(true)
		if err := s.Leave(t.Context(), "ghost"); err != nil {
			t.Fatal(err)
		}
		plan(false)
		create("use --start 11 or more")
	})
}

// TestCreateWhileNodesCannotBeAsked: a row vanished, and a node that has issued numbers of the tag creates it again at their
// end. Another node has issued more. While the database answers too slowly to ask that one, the tag is not created. Where
// the tables are missing there is no node to ask.
func TestCreateWhileNodesCannotBeAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &deaf{Store: memory.New()}
		s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 10})
		a, b := node(t, s, nil)
		other, _ := node(t, s, nil)
		for _, x := range []*segment.Allocator{a, other} {
			if _, err := x.Next(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		s.Remove("order")
		for _, tt := range []struct {
			err   error
			start int64
			want  error
		}{
			{context.DeadlineExceeded, a.Mark("order").High, leaf.ErrNotReady},
			{nil, a.Mark("order").High, leaf.ErrConflict},
			{segment.ErrSchema, other.Mark("order").High, nil},
		} {
			s.err = tt.err
			row := segment.NewRow{Tag: "order", Start: tt.start, Step: 10}
			if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: row}); !errors.Is(err, tt.want) {
				t.Errorf("answers of nodes: %v; got %v, want %v", tt.err, err, tt.want)
			}
		}
	})
}
