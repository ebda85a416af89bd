package manage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// javas is a registry in which a Java server holds number 5, and no node anything.
type javas struct{ worker.Registry }

func (javas) Info() worker.Info { return worker.Info{Name: "zookeeper"} }

func (javas) Free(context.Context, int64) error { return worker.ErrNotFound }

func (javas) List(context.Context) ([]worker.Record, error) {
	return []worker.Record{{Number: 5, Address: "10.0.0.9:8080"}}, nil
}

// TestReleaseOfAJavaServersNumber: the number is in the list, so the refusal must not say that
// it was never used.
func TestReleaseOfAJavaServersNumber(t *testing.T) {
	t.Parallel()
	b := manage.On(&manage.Registry{Opened: javas{}, Layout: snowflake.Leaf(), Own: func() int64 { return -1 }})
	for number, want := range map[int64]string{5: "belongs to 10.0.0.9:8080, which is no node of Leaf for Go", 6: "was never used"} {
		if err := manage.Tell(t.Context(), b, manage.ReleaseWorker{Number: number}); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), want) {
			t.Errorf("release %d: got %v, want %q", number, err, want)
		}
	}
}

// elsewhere is a registry in a database that became another cluster's.
type elsewhere struct{ worker.Registry }

func (elsewhere) Info() worker.Info { return worker.Info{Name: "mysql"} }

func (elsewhere) List(context.Context) ([]worker.Record, error) {
	return nil, &segment.ClusterError{Own: "ours", Found: "theirs"}
}

// TestRegistryOfAnotherCluster: the database answers, and to ask it again does not help.
func TestRegistryOfAnotherCluster(t *testing.T) {
	t.Parallel()
	r := &manage.Registry{Opened: elsewhere{}, Layout: snowflake.Leaf(), Own: func() int64 { return -1 }}
	_, err := manage.Ask(t.Context(), manage.On(r), manage.ListWorkers{})
	if !errors.Is(err, leaf.ErrConflict) || strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "theirs") {
		t.Errorf("%v; want ErrConflict that names the other cluster", err)
	}
}

// TestStaticNumberWhileItWaits: a static number belongs to the process that answers, also
// while the process waits and issues nothing.
func TestStaticNumberWhileItWaits(t *testing.T) {
	waits := &manage.Registry{
		Opened: worker.NewStatic(5), Layout: snowflake.Leaf(), Namespace: worker.NewNamespace("test", snowflake.Leaf(), 0),
		Own: func() int64 { return -1 },
	}
	all, err := manage.Ask(t.Context(), manage.On(waits), manage.ListWorkers{})
	if err != nil {
		t.Fatal(err)
	}
	want := manage.Worker{Number: 5, State: manage.WorkerRunning, Own: true}
	if len(all.Workers) != 1 || all.Workers[0] != want {
		t.Errorf("workers %+v, want %+v", all.Workers, want)
	}
}

// unused is a registry of a number that its owner released before its first ID.
type unused struct{ javas }

func (unused) List(context.Context) ([]worker.Record, error) {
	epoch := snowflake.Leaf().Epoch
	return []worker.Record{{Number: 5, Floor: epoch, Bound: epoch, Released: true}, {Number: 6, Floor: epoch, Bound: epoch + 1, Released: true}}, nil
}

func (unused) Peers(context.Context) ([]worker.Peer, error) { return nil, nil }

// TestNumberThatIssuedNothing: its bound is the epoch of the layout, which is no time at which
// anything was issued.
func TestNumberThatIssuedNothing(t *testing.T) {
	t.Parallel()
	r := &manage.Registry{Opened: unused{}, Layout: snowflake.Leaf(), Own: func() int64 { return -1 }}
	all, err := manage.Ask(t.Context(), manage.On(r), manage.ListWorkers{})
	if err != nil {
		t.Fatal(err)
	}
	want := []manage.Worker{
		{Number: 5, State: manage.WorkerReleased, Released: true},
		{Number: 6, State: manage.WorkerReleased, Released: true, Bound: snowflake.Leaf().Epoch + 1},
	}
	if !slices.Equal(all.Workers, want) {
		t.Errorf("workers %+v, want %+v", all.Workers, want)
	}
}
