package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
)

// many returns n nodes of a zone, with IDs that sort alike and differ in few bits.
func many(n int, zone string) (list []discovery.Node) {
	for i := range n {
		list = append(list, node(fmt.Sprintf("%s-node-%03d", zone, i), zone, 100))
	}
	return list
}

// TestSubsetIsEven: each node is among the first of as many clients, and so are those that
// take the place of a node.
func TestSubsetIsEven(t *testing.T) {
	const clients, nodes, size = 4000, 40, 8
	list := many(nodes, "x")
	first, next := make(map[string]int), make(map[string]int)
	for seed := range uint64(clients) {
		keys := client.Preferred(seed, size, "", list)
		for _, k := range keys[:size] {
			first[k]++
		}
		if slices.Contains(keys[:size], "x-node-000 x-node-000:1") {
			next[keys[size]]++
		}
	}
	const want, wantNext = clients * size / nodes, clients * size / nodes / (nodes - 1)
	for _, n := range list[1:] {
		key := n.ID + " " + n.GRPC
		if got := first[key]; got < want*85/100 || got > want*115/100 {
			t.Errorf("%s is used by %d of %d clients, want about %d", n.ID, got, clients, want)
		}
		if got := next[key]; got < wantNext/3 || got > wantNext*2 {
			t.Errorf("%s takes the place of a node with %d clients, want about %d", n.ID, got, wantNext)
		}
	}
}

// TestSubsetIsStable: a node that comes or goes changes at most one of the nodes of a
// client, and the order of the list changes none.
func TestSubsetIsStable(t *testing.T) {
	const size = 8
	list := append(many(20, "x"), many(20, "y")...)
	for seed := range uint64(100) {
		for _, zone := range []string{"", "x"} {
			before := client.Preferred(seed, size, zone, list)[:size]
			turned := slices.Clone(list)
			slices.Reverse(turned)
			if after := client.Preferred(seed, size, zone, turned)[:size]; !slices.Equal(before, after) {
				t.Fatalf("seed %d: the order of the list changes the nodes: %v, %v", seed, before, after)
			}
			for i := range list {
				after := client.Preferred(seed, size, zone, slices.Delete(slices.Clone(list), i, i+1))[:size]
				gone := slices.DeleteFunc(slices.Clone(before), func(k string) bool { return slices.Contains(after, k) })
				if len(gone) > 1 || len(gone) == 1 && !strings.HasPrefix(gone[0], list[i].ID+" ") {
					t.Fatalf("seed %d: without %s the client gives up %v", seed, list[i].ID, gone)
				}
			}
		}
	}
}

// TestSubsetZones: how many of a client's nodes are of its zone.
func TestSubsetZones(t *testing.T) {
	for _, tt := range []struct {
		name         string
		size         int
		zone         string
		x, y         int // nodes of the zones
		drained      int // nodes of zone x with weight 0
		wantX, wantY int
	}{
		{"a quarter is of other zones", 8, "x", 20, 20, 0, 6, 2},
		{"a small zone is filled up", 8, "x", 3, 20, 0, 3, 5},
		{"few nodes in other zones", 8, "x", 20, 1, 0, 7, 1},
		{"no other zone", 8, "x", 20, 0, 0, 8, 0},
		{"a zone without nodes", 8, "z", 4, 20, 0, -1, -1},
		{"two nodes", 2, "x", 20, 20, 0, 2, 0},
		{"weight 0 comes after other zones", 8, "x", 3, 4, 20, 3 + 1, 4},
		{"fewer nodes than places", 8, "x", 2, 3, 0, 2, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := slices.Concat(many(tt.x, "x"), many(tt.y, "y"))
			for i := range tt.drained {
				list = append(list, node(fmt.Sprint("x-drained-", i), "x", 0))
			}
			for seed := range uint64(50) {
				keys := client.Preferred(seed, tt.size, tt.zone, list)
				x, y := 0, 0
				for _, k := range keys[:min(tt.size, len(keys))] {
					if strings.HasPrefix(k, "x-") {
						x++
					} else {
						y++
					}
				}
				if x+y != min(tt.size, len(list)) || tt.wantX >= 0 && (x != tt.wantX || y != tt.wantY) {
					t.Fatalf("seed %d: %d of zone x and %d of zone y, want %d and %d", seed, x, y, tt.wantX, tt.wantY)
				}
			}
		})
	}
}
