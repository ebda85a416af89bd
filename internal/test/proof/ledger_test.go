package proof_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/idlog"
)

// ledger collects IDs per tag. It keeps them all and looks for repeats at the end:
// looking at each one under load would slow the load down.
type ledger struct {
	mu  sync.Mutex
	ids map[string][]int64
}

func newLedger() *ledger { return &ledger{ids: map[string][]int64{}} }

func (l *ledger) add(tag string, ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[tag] = append(l.ids[tag], ids...)
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, ids := range l.ids {
		n += len(ids)
	}
	return n
}

// highest returns the highest ID of a tag.
func (l *ledger) highest(tag string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Max(l.ids[tag])
}

// check fails the test if an ID of a tag is there twice, by the checker of leaf verify.
// The order is not looked at: replies to many callers are mixed here.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var log bytes.Buffer
	w := idlog.NewWriter(&log, idlog.Binary)
	for tag, ids := range l.ids {
		for _, id := range ids {
			if err := w.ID(tag, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := idlog.CheckSources(context.Background(), idlog.Options{AnyOrder: true}, idlog.Bytes("all clients", log.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Duplicates {
		t.Errorf("tag %q: IDs issued twice: %+v", d.Key, d)
	}
}

func TestLedgerFindsARepeat(t *testing.T) {
	fake := &testing.T{}
	l := newLedger()
	l.add("a", []int64{1, 2, 3})
	l.add("b", []int64{3})
	if l.check(fake); fake.Failed() {
		t.Fatal("distinct IDs were reported")
	}
	l.add("a", []int64{3})
	if l.check(fake); !fake.Failed() {
		t.Fatal("a repeated ID was not reported")
	}
}
