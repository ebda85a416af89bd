package proof_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
)

// TestProcessesStartTogether: many processes start at once on an empty registry, each
// with an address of its own, and then all with the same one. No two that serve have
// one worker ID. (Conformance does it with 64 claimers in one process; here each is
// a process of its own.)
func TestProcessesStartTogether(t *testing.T) {
	t.Parallel()
	count := long.Load(8, 64)
	for name, same := range map[string]bool{"own addresses": false, "one address": true} {
		for _, kind := range registries { // one after the other: all at once are processes enough
			t.Run(name+"/"+kind.name, func(t *testing.T) { together(t, kind.open(t), count, same) })
		}
	}
}

func together(t *testing.T, r *registry, count int, same bool) {
	nodes := make([]*node, count)
	var started sync.WaitGroup
	for i := range nodes {
		address := "10.1.0.1:8080"
		if !same {
			address = fmt.Sprintf("10.1.0.%d:8080", i+1)
		}
		nodes[i] = r.worker(t, fmt.Sprintf("n%d", i), address)
		started.Go(func() { nodes[i].start(t) })
	}
	started.Wait()
	wanted := count
	if same && r.fixed {
		wanted = 1
	}
	serving := map[int64]string{}
	waitFor(t, 3*time.Minute, fmt.Sprintf("%d nodes that serve", wanted), func() bool {
		for _, n := range nodes {
			ids, _ := n.take(t, 3)
			if ids == nil {
				continue
			}
			w := workerOf(ids[0])
			if other, taken := serving[w]; taken && other != n.name {
				t.Fatalf("%s and %s both serve as worker %d", n.name, other, w)
			}
			serving[w] = n.name
		}
		return len(serving) >= wanted
	})
	if len(serving) != wanted {
		t.Fatalf("%d nodes serve, want %d: %v", len(serving), wanted, serving)
	}
	if wanted == count {
		return
	}
	// Every other one must say why not, and none may have joined meanwhile.
	var refusing, ready int
	waitFor(t, 3*time.Minute, "refusals", func() bool {
		refusing, ready = 0, 0
		for _, n := range nodes {
			ok, text := n.state(t)
			switch {
			case ok:
				ready++
			case strings.Contains(text, "held by another process"):
				refusing++
			}
		}
		return ready+refusing == count
	})
	if ready != 1 {
		t.Errorf("%d nodes are ready with one address", ready)
	}
	issuing := 0
	for _, n := range nodes {
		if ids, _ := n.take(t, 1); ids != nil {
			issuing++
		}
	}
	if issuing != 1 {
		t.Errorf("%d nodes issue IDs with one address", issuing)
	}
}
