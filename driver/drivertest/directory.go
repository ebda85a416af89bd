package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

// DirectoryBackend is an empty directory, and what the suite must know of it.
type DirectoryBackend struct {
	Directory discovery.Directory

	// Other returns a directory on the same entries, as another process has it: with a
	// connection of its own.
	Other func(t *testing.T) discovery.Directory

	// Plant writes text as the entry of id, past the driver, for a minute or longer.
	Plant func(t *testing.T, id, text string)

	// Die makes the process of Directory end without a word. nil: not needed, because an
	// entry ends when its process does not renew it.
	Die func(t *testing.T)

	// Block makes all calls of Directory hang until heal. nil: none can.
	Block func(t *testing.T) (heal func())

	// CloseEnds says that the entries of a connection end with it.
	CloseEnds bool
}

// RunDirectory holds a directory of nodes to its contract. newBackend is called once
// per case.
func RunDirectory(t *testing.T, newBackend func(t *testing.T) DirectoryBackend) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b DirectoryBackend)
	}{
		{"an empty directory", directoryEmpty},
		{"put, list, remove", directoryPut},
		{"every field at its limits", directoryFields},
		{"two processes", directoryTwo},
		{"one process replaces the entry of another", directoryTakeOver},
		{"ordered by ID", directoryOrder},
		{"what cannot be is refused", directoryRefuses},
		{"garbage among the entries", directoryGarbage},
		{"put at the same time", directoryTogether},
		{"an entry ends", directoryExpiry},
		{"an entry that is renewed stays", directoryRenewed},
		{"context already done", directoryDone},
		{"a call that hangs", directoryBlocked},
		{"closed", directoryClosed},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newBackend(t)) })
	}
}

// testNode is a valid node.
func testNode(id string) discovery.Node {
	return discovery.Node{ID: id, Zone: "a", Weight: discovery.DefaultWeight, HTTP: "10.0.0.1:8080", GRPC: "10.0.0.1:9090"}
}

// nodeTTL is longer than a case takes.
const nodeTTL = time.Minute

func putNode(t *testing.T, d discovery.Directory, n discovery.Node) {
	t.Helper()
	if err := d.Put(ctx(t), n, nodeTTL); err != nil {
		t.Fatalf("Put(%+v): %v", n, err)
	}
}

// wantNodes fails unless the directory lists exactly want.
func wantNodes(t *testing.T, d discovery.Directory, want ...discovery.Node) {
	t.Helper()
	got, err := d.List(ctx(t))
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	if len(got)+len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("List (-want +got):\n%s", diff)
	}
}

func directoryEmpty(t *testing.T, b DirectoryBackend) {
	wantNodes(t, b.Directory)
	for range 2 {
		if err := b.Directory.Remove(ctx(t), "nobody"); err != nil {
			t.Errorf("Remove of a node that is not there: %v", err)
		}
	}
	wantNodes(t, b.Other(t))
}

func directoryPut(t *testing.T, b DirectoryBackend) {
	n := testNode("n1")
	putNode(t, b.Directory, n)
	wantNodes(t, b.Directory, n)
	putNode(t, b.Directory, n)
	wantNodes(t, b.Directory, n)
	n.Weight, n.Zone, n.HTTP = 0, "", ""
	putNode(t, b.Directory, n)
	wantNodes(t, b.Directory, n)
	for range 2 {
		if err := b.Directory.Remove(ctx(t), n.ID); err != nil {
			t.Fatalf("Remove: %v", err)
		}
		wantNodes(t, b.Directory)
	}
	putNode(t, b.Directory, n)
	wantNodes(t, b.Directory, n)
}

func directoryFields(t *testing.T, b DirectoryBackend) {
	long := strings.Repeat("x", discovery.MaxNameLen)
	host := strings.Repeat("h", 253)
	for _, n := range []discovery.Node{
		{ID: "x", RESP: "[2001:db8::1]:1"},
		{ID: "_-.9Z", Weight: discovery.MaxWeight, GRPC: "a_b.example.:65535"},
		{ID: long, Zone: long, Weight: 1, HTTP: host + ":65535", GRPC: host + ":65535", RESP: host + ":65535"},
		{ID: "Zone", Zone: `eu west "1" <&> \ %2F ' 机房 😀`, HTTP: "h:80"},
	} {
		putNode(t, b.Directory, n)
		wantNodes(t, b.Other(t), n)
		if err := b.Directory.Remove(ctx(t), n.ID); err != nil {
			t.Fatalf("Remove(%q): %v", n.ID, err)
		}
	}
}

func directoryTwo(t *testing.T, b DirectoryBackend) {
	other := b.Other(t)
	n1, n2 := testNode("n1"), testNode("n2")
	for i := range 10 { // what one has put the other sees, at once
		n1.Weight, n2.Weight = i, 100-i
		putNode(t, b.Directory, n1)
		if i == 0 {
			wantNodes(t, other, n1)
		}
		putNode(t, other, n2)
		wantNodes(t, b.Directory, n1, n2)
		wantNodes(t, other, n1, n2)
	}
	if err := other.Remove(ctx(t), n1.ID); err != nil {
		t.Fatalf("Remove of another process's node: %v", err)
	}
	wantNodes(t, b.Directory, n2)
	putNode(t, b.Directory, n1) // which does not know of the removal
	wantNodes(t, other, n1, n2)
}

func directoryTakeOver(t *testing.T, b DirectoryBackend) {
	n, same := testNode("n1"), testNode("same")
	putNode(t, b.Directory, n)
	putNode(t, b.Directory, same)
	n.HTTP = "10.0.0.2:8080" // the same data directory on another machine
	other := b.Other(t)
	putNode(t, other, n)
	putNode(t, other, same) // the same process, started again
	wantNodes(t, b.Directory, n, same)
	if !b.CloseEnds {
		return
	}
	if err := b.Directory.Close(); err != nil {
		t.Fatal(err)
	}
	wantNodes(t, other, n, same)
}

func directoryOrder(t *testing.T, b DirectoryBackend) {
	var want []discovery.Node
	for _, id := range []string{"0", "1", "10", "2", "A", "Z", "_", "a", "a-", "a.", "a0", "b"} { // by their bytes
		want = append(want, testNode(id))
	}
	for i := range want { // put in another order
		putNode(t, b.Directory, want[(i*5+7)%len(want)])
	}
	wantNodes(t, b.Directory, want...)
	wantNodes(t, b.Other(t), want...)
}

func directoryRefuses(t *testing.T, b DirectoryBackend) {
	kept := testNode("n1")
	putNode(t, b.Directory, kept)
	edit := func(f func(*discovery.Node)) discovery.Node {
		n := kept
		f(&n)
		return n
	}
	for name, n := range map[string]discovery.Node{
		"no ID":          edit(func(n *discovery.Node) { n.ID = "" }),
		"a path":         edit(func(n *discovery.Node) { n.ID = "../n1" }),
		"a long ID":      edit(func(n *discovery.Node) { n.ID = strings.Repeat("x", discovery.MaxNameLen+1) }),
		"a long zone":    edit(func(n *discovery.Node) { n.Zone = strings.Repeat("x", discovery.MaxNameLen+1) }),
		"a zero byte":    edit(func(n *discovery.Node) { n.Zone = "a\x00" }),
		"no UTF-8":       edit(func(n *discovery.Node) { n.Zone = "a\xff" }),
		"weight -1":      edit(func(n *discovery.Node) { n.Weight = -1 }),
		"a large weight": edit(func(n *discovery.Node) { n.Weight = discovery.MaxWeight + 1 }),
		"no port":        edit(func(n *discovery.Node) { n.HTTP = "10.0.0.1" }),
		"port 0":         edit(func(n *discovery.Node) { n.GRPC = "10.0.0.1:0" }),
		"no address":     edit(func(n *discovery.Node) { n.HTTP, n.GRPC = "", "" }),
	} {
		if err := b.Directory.Put(ctx(t), n, nodeTTL); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: Put: %v; want ErrBadRequest", name, err)
		}
	}
	for _, ttl := range []time.Duration{0, -1, discovery.MinTTL - 1, discovery.MaxTTL + 1} {
		if err := b.Directory.Put(ctx(t), edit(func(n *discovery.Node) { n.Weight++ }), ttl); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Put for %v: %v; want ErrBadRequest", ttl, err)
		}
	}
	for _, id := range []string{"", "/", "..", "n1/", "a b", strings.Repeat("x", discovery.MaxNameLen+1)} {
		if err := b.Directory.Remove(ctx(t), id); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Remove(%q): %v; want ErrBadRequest", id, err)
		}
	}
	wantNodes(t, b.Directory, kept)
}

func directoryGarbage(t *testing.T, b DirectoryBackend) {
	n1, n2, newer := testNode("n1"), testNode("n2"), testNode("n3")
	putNode(t, b.Directory, n1)
	for id, text := range map[string]string{
		"g1": "", "g2": "null", "g3": "{", "g4": `{"id":"g4"}`, "g5": "<html>", "g6": "[]", "g7": testNode("n7").Encode(),
		"g8": testNode("g8").Encode() + "x", "g9": strings.Repeat("g", 4000),
	} {
		b.Plant(t, id, text)
	}
	b.Plant(t, newer.ID, strings.Replace(newer.Encode(), "{", `{"since":"v9",`, 1))
	putNode(t, b.Directory, n2)
	wantNodes(t, b.Directory, n1, n2, newer)
	wantNodes(t, b.Other(t), n1, n2, newer)
	g1 := testNode("g1") // a node can take the place of garbage
	putNode(t, b.Directory, g1)
	wantNodes(t, b.Other(t), g1, n1, n2, newer)
	if err := b.Directory.Remove(ctx(t), "g2"); err != nil {
		t.Errorf("Remove of garbage: %v", err)
	}
}

func directoryTogether(t *testing.T, b DirectoryBackend) {
	const processes, each = 4, 5
	shared := make([]discovery.Node, processes)
	var all sync.WaitGroup
	for p := range processes {
		shared[p] = testNode("shared")
		shared[p].Weight = p
		d := b.Other(t)
		all.Go(func() {
			for i := range each {
				for _, n := range []discovery.Node{testNode(fmt.Sprintf("n%d-%d", p, i)), shared[p]} {
					if err := d.Put(ctx(t), n, nodeTTL); err != nil {
						t.Errorf("Put(%s): %v", n.ID, err)
					}
				}
			}
		})
	}
	all.Wait()
	got, err := b.Directory.List(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	var want []discovery.Node
	for p := range processes {
		for i := range each {
			want = append(want, testNode(fmt.Sprintf("n%d-%d", p, i)))
		}
	}
	if last := got[len(got)-1]; len(got) == len(want)+1 && last.ID == "shared" {
		want = append(want, shared[last.Weight%processes]) // one of them, whole
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}
