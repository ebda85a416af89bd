package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// openKind opens one of the two registries that may lie below one name.
var openKind = map[string]func(*testing.T, place) worker.Registry{
	"zookeeper":         func(t *testing.T, p place) worker.Registry { return p.original(t) },
	"zookeeper-recycle": func(t *testing.T, p place) worker.Registry { return p.recycle(t) },
}

var otherKind = map[string]string{"zookeeper": "zookeeper-recycle", "zookeeper-recycle": "zookeeper"}

// present is a request by the clock of this machine, which the two kinds compare T with.
// Only number 1 may be taken.
func present(address string, horizon time.Duration) worker.Request {
	req := request(address)
	req.Numbers = leaf.Range{Lo: 1, Hi: 2}
	req.Now = time.Now().UnixMilli()
	req.Bound, req.Quiet = req.Now+horizon.Milliseconds(), 0
	return req
}

// forKinds runs f for each kind that has the name before the other one.
func forKinds(t *testing.T, f func(t *testing.T, p place, kind string)) {
	t.Helper()
	t.Parallel()
	ns := server.ZooKeeper(t)
	for kind := range openKind {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, newPlace(t, ns), kind)
		})
	}
}

// TestKindsExcludeEachOther: a number that one kind of registry holds is not seen by the
// other one below the same name, so that refuses to start.
func TestKindsExcludeEachOther(t *testing.T) {
	forKinds(t, func(t *testing.T, p place, kind string) {
		held := claim(t, openKind[kind](t, p), present("10.0.0.1:8080", time.Minute))
		other := openKind[otherKind[kind]](t, p)
		got, err := other.Claim(ctx(t), present("10.0.0.2:8080", time.Minute))
		if !errors.Is(err, worker.ErrTaken) || !strings.Contains(err.Error(), "--snowflake-registry "+kind) {
			t.Errorf("Claim beside %+v = %+v, %v", held, got, err)
		}
		for _, cure := range []string{"and Java servers for good", "divide the numbers as docs/SNOWFLAKE.md#operating says"} {
			if !strings.Contains(err.Error(), cure) {
				t.Errorf("%v; want %q: numbers that the other nodes, or Java servers, have or get are given again", err, cure)
			}
		}
		if err := other.Init(ctx(t), request(addr).Namespace); !errors.Is(err, worker.ErrTaken) {
			t.Errorf("Init beside %+v: %v", held, err)
		}
	})
}

// TestKindIsReplaced: when no number of one kind is held, the other kind takes the name
// over. It starts above every T, and no claim of the first kind comes back.
func TestKindIsReplaced(t *testing.T) {
	forKinds(t, func(t *testing.T, p place, kind string) {
		first := openKind[kind](t, p)
		declare(t, first)
		gone := claim(t, first, present("10.0.0.1:8080", -time.Minute)) // its T has passed, and it does not know
		next := openKind[otherKind[kind]](t, p)
		req := present("10.0.0.2:8080", time.Minute)
		req.Now = gone.Bound - 1000 // by a clock that is behind
		if kind == "zookeeper" {
			req.Numbers.Hi = 3
		}
		got := claim(t, next, req)
		if got.Floor < gone.Bound {
			t.Errorf("claim = %+v, below the T of %+v", got, gone)
		}
		if again, err := first.Renew(ctx(t), gone, gone.Bound+600_000); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Renew of the kind before = %+v, %v; want ErrLost", again, err)
		}
	})
}

// TestKindsAfterACleanStop: a number that was released is free for the other kind at once.
func TestKindsAfterACleanStop(t *testing.T) {
	forKinds(t, func(t *testing.T, p place, kind string) {
		first := openKind[kind](t, p)
		own := claim(t, first, present("10.0.0.1:8080", time.Minute))
		if err := first.Release(ctx(t), own, time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		claim(t, openKind[otherKind[kind]](t, p), present("10.0.0.2:8080", time.Minute))
	})
}

// TestUnreadableRecordOfTheOtherKind: a node of one kind of ZooKeeper registry does not start
// while a record of the other kind cannot be read, because it may hold a number.
func TestUnreadableRecordOfTheOtherKind(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for kind, garble := range map[string]func(t *testing.T, p place){
		"zookeeper-recycle": func(t *testing.T, p place) {
			p.set(t, p.root()+"/leaf_pool/bounds/1", `{"format":2,"bound":99999999999999}`)
		},
		"zookeeper": func(t *testing.T, p place) {
			p.set(t, p.root()+"/forever/"+p.children(t, p.root()+"/forever")[0], "garbage")
		},
		"zookeeper without a child": func(t *testing.T, p place) {
			p.set(t, p.root()+"/leaf_owner/10.0.0.1:8080", "garbage")
			p.remove(t, p.root()+"/forever/"+p.children(t, p.root()+"/forever")[0])
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			kind, _, _ := strings.Cut(kind, " ")
			first := openKind[kind](t, p)
			declare(t, first)
			claim(t, first, present("10.0.0.1:8080", -time.Minute))
			garble(t, p)
			other := openKind[otherKind[kind]](t, p)
			short, cancel := context.WithTimeout(ctx(t), 5*time.Second)
			defer cancel()
			if got, err := other.Claim(short, present("10.0.0.2:8080", time.Minute)); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("Claim = %+v, %v; want ErrConflict", got, err)
			}
		})
	}
}
