package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestTextsNameTheCause: what a node says when it does not issue names what is so, and no
// cause or cure that is not.
func TestTextsNameTheCause(t *testing.T) {
	said := func(n *node) string {
		st := n.Status()
		text := st.Reason
		for _, a := range n.alarms.list() {
			text += "\n" + a.Text + "\n" + a.Do
		}
		return text
	}
	for _, tt := range []struct {
		name    string
		kind    worker.Kind
		happens func(w *world, n *node)
		want    string
		never   string
	}{
		{"the layout has ended", worker.Leased, func(_ *world, n *node) {
			n.clock.step(n.cfg.Layout.End().Sub(n.clock.Now()) - 20*time.Second)
			n.up().issue(10)
			time.Sleep(30 * time.Second)
		}, "past the end of the layout", "does not answer"},
		{"the registry goes away while the node waits", worker.Leased, func(w *world, n *node) {
			n.cfg.Fresh = false
			_ = n.begin()
			time.Sleep(5 * time.Second)
			w.records.breakOff(true)
			time.Sleep(20 * time.Second)
		}, "cannot be used", "IDs are issued until"},
		{"a static node whose clock is behind", worker.Fixed, func(w *world, n *node) {
			if err := n.start(worker.NewStatic(2)); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			n.issue(10)
			n.stop()
			n.clock.step(-time.Minute)
			_ = n.start(worker.NewStatic(2))
			time.Sleep(5 * time.Second)
		}, "the clock of this node is behind", "another node"},
		{"the clock is behind what was issued", worker.Fixed, func(_ *world, n *node) {
			n.up()
			n.clock.step(9 * time.Second)
			time.Sleep(2 * time.Second)
			n.issue(10)
			n.clock.step(-9 * time.Second)
			time.Sleep(2 * time.Second)
		}, "wait: the node issues again", "confirm-clock"},
		{"an operator released the number", worker.Leased, func(w *world, n *node) {
			n.cfg.Numbers.Hi = 1
			n.up().issue(10)
			if err := worker.NewPool(w.records).Free(w.t.Context(), 0); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}, "was cut off", "it is in a registry that is new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, tt.kind, func(w *world) {
				n := w.node("a")
				tt.happens(w, n)
				if text := said(n); !strings.Contains(text, tt.want) || strings.Contains(text, tt.never) {
					t.Errorf("want %q and not %q:\n%s", tt.want, tt.never, text)
				}
			})
		})
	}
}

// TestAnswerWithoutANumber: a caller hears whether something has refused the node a number, or the registry does not answer.
func TestAnswerWithoutANumber(t *testing.T) {
	for _, tt := range []struct {
		name    string
		happens func(w *world)
		want    string
	}{
		{"the registry is away", func(w *world) { w.records.breakOff(true) }, "no worker ID yet, because the registry does not answer"},
		{"all numbers are taken", func(w *world) {
			other := w.node("b")
			other.cfg.Numbers.Hi = 1
			other.up()
		}, "snowflake mode is refused: this node has no worker ID"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				tt.happens(w)
				n := w.node("a")
				n.cfg.Numbers.Hi = 1
				_ = n.begin()
				if _, err := n.Next(t.Context(), ""); !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
			})
		})
	}
}

// TestFullRegistryCountsItsRange: rows of another program outside the range take no number of it.
func TestFullRegistryCountsItsRange(t *testing.T) {
	var rows []worker.Adoptable
	for n := range int64(10) {
		rows = append(rows, worker.Adoptable{Number: n, Address: "x:1"})
	}
	_, err := worker.NewPool(reserving{newRecords(worker.Leased), rows}).Claim(t.Context(), worker.Request{
		Namespace: worker.Namespace{Name: "n"}, Address: "a:1", Nonce: "n", Numbers: leaf.Range{Lo: 0, Hi: 4}, Now: 1000, Bound: 2000,
	})
	if err == nil || !strings.Contains(err.Error(), ", 4 of them by rows of another program") {
		t.Errorf("error %v", err)
	}
}

// reserving has rows of another program.
type reserving struct {
	*records

	rows []worker.Adoptable
}

func (r reserving) Reserved(context.Context) ([]worker.Adoptable, error) { return r.rows, nil }

// TestAnotherNamespaceIsSetBack: a node whose namespace was changed is not sent to another registry, which has the numbers of
// the nodes that it leaves behind.
func TestAnotherNamespaceIsSetBack(t *testing.T) {
	t.Parallel()
	stored := worker.StoredNamespace{Namespace: worker.Namespace{Name: "default", Fingerprint: "f"}}
	err := stored.Admit(worker.Namespace{Name: "prod", Fingerprint: "f"})
	if !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "set it back: another registry gives the numbers that the nodes of this one have") {
		t.Errorf("Admit = %v; want ErrForeign that says to set the namespace back", err)
	}
}
