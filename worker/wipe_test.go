package worker_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// hooked records do something right before a write.
type hooked struct {
	*records

	before func(worker.Record)
}

func (h *hooked) Put(ctx context.Context, r worker.Record) (string, error) {
	if before := h.before; before != nil {
		h.before = nil
		before(r)
	}
	return h.records.Put(ctx, r)
}

// TestWipeBetweenLookAndWrite: a claimer has seen that a number was never used. Before
// it writes, somebody takes the number, and the registry is wiped: the number looks as
// it did, but its owner is still at it.
func TestWipeBetweenLookAndWrite(t *testing.T) {
	ns := worker.Namespace{Name: "test", Fingerprint: "f"}
	request := func(nonce string, quiet int64) worker.Request {
		return worker.Request{Namespace: ns, Address: nonce, Nonce: nonce, Numbers: leaf.Range{Lo: 0, Hi: 1}, Now: 1000, Bound: 61_000, Margin: 5000, Quiet: quiet}
	}
	for _, tt := range []struct {
		name    string
		recycle bool // somebody else has made the namespace anew meanwhile
		late    bool // the write has no answer, and is found by the next claim
		want    int64
	}{
		{"wiped", false, false, 81_000},
		{"wiped and made anew", true, false, 82_000},
		{"wiped, the answer lost", false, true, 81_000},
		{"wiped and made anew, the answer lost", true, true, 82_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecords(worker.Leased)
			pool := worker.NewPool(r)
			if err := pool.Init(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			h := &hooked{records: r, before: func(worker.Record) {
				if _, err := pool.Claim(t.Context(), request("owner", 0)); err != nil {
					t.Fatal(err)
				}
				r.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
				if tt.recycle {
					if _, err := r.Namespace(t.Context(), &worker.StoredNamespace{Namespace: ns, IssueFrom: 82_000}); err != nil {
						t.Fatal(err)
					}
				}
				if tt.late {
					r.lose = 1
				}
			}}
			claimer := worker.NewPool(h)
			got, err := claimer.Claim(t.Context(), request("claimer", 81_000))
			if tt.late {
				if err == nil {
					t.Fatal("no error without an answer")
				}
				got, err = claimer.Claim(t.Context(), request("claimer", 81_000))
			}
			if err != nil || got.Floor != tt.want || got.Bound < got.Floor {
				t.Errorf("Claim = %+v, %v; want it from %d on", got, err, tt.want)
			}
		})
	}
}

// TestLateWriteAfterAWipe: a claim of a process that is gone arrives in a new namespace,
// with a T that the registry has long exceeded. The next owner starts with the namespace.
func TestLateWriteAfterAWipe(t *testing.T) {
	r := newRecords(worker.Leased)
	ns := worker.StoredNamespace{Namespace: worker.Namespace{Name: "test", Fingerprint: "f"}, IssueFrom: 80_000}
	if _, err := r.Namespace(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Put(t.Context(), worker.Record{Nonce: "gone", Bound: 20_000}); err != nil {
		t.Fatal(err)
	}
	got, err := worker.NewPool(r).Claim(t.Context(), worker.Request{
		Namespace: ns.Namespace, Address: "b", Nonce: "b", Numbers: leaf.Range{Lo: 0, Hi: 1}, Now: 30_000, Bound: 90_000, Margin: 5000,
	})
	if err != nil || got.Floor != 80_000 || got.Bound < got.Floor {
		t.Errorf("Claim = %+v, %v; want it from 80000 on", got, err)
	}
}

// TestRegistryTakesThePlaceOfAnother: all nodes are stopped, as the documents say, and the
// next registry is not declared new. Its node has a clock that was behind the last one's.
func TestRegistryTakesThePlaceOfAnother(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		change := func(c *worker.Config) { c.Numbers.Hi, c.Fresh = 1, false }
		a := w.node("a", change)
		if err := worker.NewPool(w.records).Init(t.Context(), worker.NewNamespace("test", a.cfg.Layout, 0)); err != nil {
			t.Fatal(err)
		}
		a.clock.step(3 * time.Second)
		a.up()
		time.Sleep(time.Minute)
		a.issue(5000)
		a.stop()
		w.records = newRecords(worker.Leased)
		b := w.node("b", change)
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		b.says(leaf.ErrNotReady, "Only before the first node of a cluster that has issued no ID starts, run leaf worker init with the settings of that node, and never where Java servers have issued IDs")
		time.Sleep(2 * time.Minute)
		b.issue(5000)
	})
}

// TestRegistryAfterAClockThatWasAheadAsTheTextSays: the clock of a node was an hour ahead, and was set right. Soon after that, all
// nodes are stopped and started with another registry, as a document says, and no ID repeats.
func TestRegistryAfterAClockThatWasAheadAsTheTextSays(t *testing.T) {
	t.Run("registry", func(t *testing.T) {
		registryAfterAClockThatWasAhead(t, "SNOWFLAKE.md", "the latest time that `leaf worker list` shows under ISSUES BELOW", func(bound time.Duration) time.Duration { return bound })
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		says := "If the clock of a machine has been off by more than ten minutes, wait for as long: the new ZooKeeper does not know which times were issued."
		registryAfterAClockThatWasAhead(t, "MIGRATION.md", says, func(time.Duration) time.Duration { return time.Hour })
	})
}

// registryAfterAClockThatWasAhead waits for what the document says, if it does. left is how far ahead the T of the old registry lies.
func registryAfterAClockThatWasAhead(t *testing.T, document, says string, wait func(left time.Duration) time.Duration) {
	page, err := os.ReadFile("../docs/" + document)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	run(t, worker.Leased, func(w *world) {
		change := func(c *worker.Config) { c.Numbers.Hi, c.Fresh = 1, false }
		a := w.node("a", change)
		if err := worker.NewPool(w.records).Init(t.Context(), worker.NewNamespace("test", a.cfg.Layout, 0)); err != nil {
			t.Fatal(err)
		}
		a.clock.step(time.Hour)
		a.up()
		ahead := time.UnixMilli(millis(a.issue(5000)))
		a.clock.step(-time.Hour)
		time.Sleep(time.Minute)
		a.stop()
		time.Sleep(a.cfg.Horizon)
		if strings.Contains(text, says) {
			time.Sleep(wait(time.UnixMilli(w.records.record(0).Bound).Sub(a.clock.Now())))
		}
		w.records = newRecords(worker.Leased)
		b := w.node("b", change)
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		time.Sleep(ahead.Sub(b.clock.Now()))
		b.issue(5000)
	})
}
