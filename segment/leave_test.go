package segment_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestCleanStopLeavesTheList: a node that has entered the list of a database leaves it when it
// stops, also when it takes no range from that database. Otherwise repairs and a new tag rule
// wait for it.
func TestCleanStopLeavesTheList(t *testing.T) {
	for name, last := range map[string]func(b *board){
		"the look after the entry fails": func(b *board) {
			b.change(func(b *board) { b.onNotices = func() error { return errDown } })
		},
		"the database belongs to another rule": func(b *board) {
			time.Sleep(time.Minute)
			foreign(b.store, true)
			time.Sleep(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &board{store: newStore(row(10))}
				a := newNode(t, b, nil, segment.Config{MaxWait: time.Second, SyncInterval: time.Second})
				started := make(chan error, 1)
				go func() { started <- a.Start(t.Context()) }()
				last(b)
				if err := <-started; err != nil {
					t.Fatal(err)
				}
				if nodes, err := b.Nodes(t.Context()); err != nil || len(nodes) != 1 {
					t.Fatalf("the list has %v, %v; want the node", nodes, err)
				}
				closeNode(t, a)
				if nodes, err := b.Nodes(t.Context()); err != nil || len(nodes) > 0 {
					t.Errorf("after a clean stop the list has %v, %v", nodes, err)
				}
			})
		})
	}
}

// TestStopDuringTheFirstLook: a node that stops while its entry is on the way to the list does
// not leave before the entry is there.
func TestStopDuringTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{store: newStore(row(10))}
		arrive := make(chan struct{})
		b.change(func(b *board) {
			b.onEnter = func() error { // the database does not hear of a call that ends
				<-arrive
				return b.Store.Enter(context.Background(), segment.Member{Node: "node-1", Process: 1})
			}
		})
		a := newNode(t, b, nil, segment.Config{MaxWait: time.Second})
		go func() { _ = a.Start(context.Background()) }()
		synctest.Wait()
		time.AfterFunc(400*time.Millisecond, func() { close(arrive) })
		_ = closeWithin(t, a, 700*time.Millisecond) // the entry outlasts half of that
		time.Sleep(time.Minute)
		if nodes, err := b.Nodes(t.Context()); err != nil || len(nodes) > 0 {
			t.Errorf("after the stop the list has %v, %v", nodes, err)
		}
	})
}
