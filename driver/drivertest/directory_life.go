package drivertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

// untilNodes repeats List until it returns n nodes.
func untilNodes(t *testing.T, d discovery.Directory, n int) {
	t.Helper()
	until(t, fmt.Sprintf("List returns %d nodes", n), func(c context.Context) error {
		got, err := d.List(c)
		if err == nil && len(got) != n {
			err = fmt.Errorf("%+v", got)
		}
		return err
	})
}

func directoryExpiry(t *testing.T, b DirectoryBackend) {
	other := b.Other(t)
	stays := testNode("stays")
	putNode(t, other, stays)
	ends := testNode("ends")
	if err := b.Directory.Put(ctx(t), ends, discovery.MinTTL); err != nil {
		t.Fatal(err)
	}
	wantNodes(t, other, ends, stays)
	if b.Die != nil {
		b.Die(t)
	}
	untilNodes(t, other, 1)
	wantNodes(t, other, stays)
	putNode(t, other, ends)
	wantNodes(t, other, ends, stays)
}

func directoryRenewed(t *testing.T, b DirectoryBackend) {
	n, ends := testNode("n1"), testNode("ends")
	tick := time.NewTicker(discovery.MinTTL / 5)
	defer tick.Stop()
	if b.Die == nil { // its end is the proof that enough time has passed
		if err := b.Directory.Put(ctx(t), ends, discovery.MinTTL); err != nil {
			t.Fatal(err)
		}
	}
	other := b.Other(t)
	for i, over := 0, false; !over || i < 8; i++ {
		if err := b.Directory.Put(ctx(t), n, discovery.MinTTL); err != nil {
			t.Fatal(err)
		}
		got, err := other.List(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		if over = len(got) == 1; got[len(got)-1] != n {
			t.Fatalf("List after %d renewals = %+v; the node that renews is missing", i, got)
		}
		<-tick.C
	}
}

func directoryDone(t *testing.T, b DirectoryBackend) {
	n := testNode("n1")
	putNode(t, b.Directory, n)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, errList := b.Directory.List(done)
	for call, err := range map[string]error{
		"List": errList, "Put": b.Directory.Put(done, testNode("n2"), nodeTTL), "Remove": b.Directory.Remove(done, n.ID),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is done: %v", call, err)
		}
	}
	wantNodes(t, b.Directory, n)
}

func directoryBlocked(t *testing.T, b DirectoryBackend) {
	if b.Block == nil {
		return
	}
	n := testNode("n1")
	putNode(t, b.Directory, n)
	heal := b.Block(t)
	for call, f := range map[string]func(context.Context) error{
		"List":   func(c context.Context) error { _, err := b.Directory.List(c); return err },
		"Put":    func(c context.Context) error { return b.Directory.Put(c, n, nodeTTL) },
		"Remove": func(c context.Context) error { return b.Directory.Remove(c, "n2") },
	} {
		short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		start := time.Now()
		err := f(short)
		cancel()
		if took := time.Since(start); err == nil || leaf.ClassOf(err).Err != nil || took > 5*time.Second {
			t.Errorf("%s that hangs: %v after %v; want an error without a class after 150 ms", call, err, took)
		}
	}
	heal()
	n.Weight = 7
	until(t, "Put after the outage", func(c context.Context) error { return b.Directory.Put(c, n, nodeTTL) })
	wantNodes(t, b.Other(t), n)
}

func directoryClosed(t *testing.T, b DirectoryBackend) {
	n := testNode("n1")
	putNode(t, b.Directory, n)
	other := b.Other(t)
	wantNodes(t, other, n)
	for range 2 {
		if err := b.Directory.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, errList := b.Directory.List(ctx(t))
	for call, err := range map[string]error{
		"List": errList, "Put": b.Directory.Put(ctx(t), n, nodeTTL), "Remove": b.Directory.Remove(ctx(t), n.ID),
	} {
		if err == nil {
			t.Errorf("%s after Close succeeded", call)
		}
	}
	if b.CloseEnds {
		untilNodes(t, other, 0)
		return
	}
	wantNodes(t, other, n)
}
