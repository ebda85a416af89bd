package drivertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/worker"
)

var modelCases = []registryCase{
	{"restarts with changing addresses never exhaust a range", churn},
	{"random lives of nodes never share a moment", randomLives},
}

// churn restarts three nodes one after the other, each time at a new address. Every
// fifth one is killed; the others release their number.
func churn(t *testing.T, b *registryBench) {
	// 60 restarts use each number of the range fifteen times. A registry that answers at once is asked for more.
	restarts, enough, slow := 200, 60, 2*time.Second
	if long.Asked() {
		restarts, enough = 5000, 5000
	}
	began := time.Now()
	handles := make([]*process, 4)
	for i := range handles {
		handles[i] = b.start(t)
	}
	if handles[0].Info().Kind == worker.Fixed {
		t.Skip("a fixed registry gives each address a number for ever")
	}
	b.declare(t, handles[0])
	ended := map[int64]int64{} // by number: nothing at or above it was issued
	held := make([]*worker.Record, 3)
	for i := range restarts {
		if i == enough && time.Since(began) > slow {
			break
		}
		node := i % len(held)
		if r := held[node]; r != nil {
			ended[r.Number] = r.Bound
			if i%5 != 0 {
				ended[r.Number] = b.now + 1
				if err := handles[i%4].Release(ctx(t), *r, b.now+1); err != nil {
					t.Fatalf("Release %d: %v", i, err)
				}
			}
		}
		b.now += 40_000
		req := b.request(address(i))
		req.Numbers = leaf.Range{Lo: 10, Hi: 14}
		r := claim(t, handles[i%4], req)
		if r.Floor < ended[r.Number] || r.Floor > b.now {
			t.Fatalf("restart %d: %+v; want a floor from %d to %d", i, r, ended[r.Number], b.now)
		}
		for other, o := range held {
			if o != nil && other != node && o.Number == r.Number {
				t.Fatalf("restart %d: number %d is held by a node that lives", i, r.Number)
			}
		}
		held[node] = &r
		for _, r := range held { // a node that lives renews
			if r == nil {
				continue
			}
			next, err := handles[i%4].Renew(ctx(t), *r, b.now+horizon)
			if err != nil {
				t.Fatalf("Renew %d: %v", i, err)
			}
			*r = next
		}
	}
}

// lives is a model of what may have been issued.
type lives struct {
	*registryBench

	random *rand.Rand
	fixed  bool
	next   int // address of the next process, where it changes
	nodes  []*modelNode
	owner  map[int64]*modelClaim // the last claim of a number
	issued map[int64]int64       // by number: no earlier owner issues at or above it, now or later
	log    []string
}

// modelNode is a node: a data directory and, while it runs, a process.
type modelNode struct {
	address string
	process *process
	claim   worker.Record    // Version "": none
	last    *modelClaim      // that one, or the one before
	file    *worker.Previous // what its directory says about the last claim
}

// modelClaim is a claim, whether its owner lives or not.
type modelClaim struct {
	node  *modelNode
	limit int64 // the owner issues nothing at or above it
}

// randomLives lets four nodes start, renew, stop, die and lose their files in
// random order, while an operator interferes and the clock goes on. A node issues
// below its T for as long as it likes, also after it was killed, as far as other nodes can
// tell. The next owner must start above that.
func randomLives(t *testing.T, b *registryBench) {
	seeds, steps := 3, 120
	if long.Asked() {
		seeds, steps = 10, 1000
	}
	first := b.start(t)
	b.declare(t, first)
	m := &lives{
		registryBench: b, fixed: first.Info().Kind == worker.Fixed,
		owner: map[int64]*modelClaim{}, issued: map[int64]int64{},
	}
	for i := range 4 {
		m.nodes = append(m.nodes, &modelNode{address: address(i % 3)}) // two are twins
	}
	for seed := range seeds {
		m.random = rand.New(rand.NewPCG(uint64(seed), 0))
		m.log = append(m.log, fmt.Sprintf("seed %d", seed))
		for range steps {
			m.step(t)
			if t.Failed() {
				t.Fatalf("after %q", m.log[max(0, len(m.log)-40):])
			}
		}
	}
}

func (m *lives) step(t *testing.T) {
	t.Helper()
	n := m.nodes[m.random.IntN(len(m.nodes))]
	m.now += m.random.Int64N(3000)
	switch roll := m.random.IntN(20); {
	case roll == 0:
		m.now += horizon + 2*margin
	case roll == 1 && n.claim.Version == "":
		n.file = nil
		m.note("%s loses its file", n.address)
	case roll == 2 && n.claim.Version != "":
		m.note("free %d", n.claim.Number)
		if err := n.process.Free(ctx(t), n.claim.Number); err != nil {
			t.Errorf("Free: %v", err)
		}
		m.owner[n.claim.Number], m.issued[n.claim.Number] = nil, m.end(n.claim.Number)
	case roll == 3 && n.claim.Version != "" && m.owner[n.claim.Number] == n.last && m.DeleteClaim != nil && !m.fixed:
		m.note("delete the claim of %d", n.claim.Number)
		m.DeleteClaim(t, n.claim.Number)
		m.owner[n.claim.Number], m.issued[n.claim.Number] = nil, m.end(n.claim.Number)
	case n.claim.Version == "":
		m.claims(t, n)
	case roll < 7:
		m.stops(t, n)
	case roll < 9:
		m.note("%s dies, number %d, T %d", n.address, n.claim.Number, n.last.limit)
		n.process.die(t)
		n.claim = worker.Record{}
	default:
		m.renews(t, n)
	}
}

func (m *lives) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf("%d: ", m.now)+fmt.Sprintf(format, args...))
}

// end returns the moment at and above which no owner of the number so far issues.
func (m *lives) end(number int64) int64 {
	end := m.issued[number]
	if o := m.owner[number]; o != nil {
		end = max(end, o.limit)
	}
	return end
}

func (m *lives) claims(t *testing.T, n *modelNode) {
	t.Helper()
	if n.process == nil || n.process.dead {
		n.process = m.start(t)
	}
	if !m.fixed {
		m.next++
		n.address = address(10 + m.next)
	}
	req := m.request(n.address)
	req.Previous = n.file
	if !m.fixed {
		req.Numbers = leaf.Range{Lo: 3, Hi: 7}
	}
	r, err := n.process.Claim(ctx(t), req)
	m.note("%s claims, file %+v: %d from %d to %d, %v", n.address, n.file, r.Number, r.Floor, r.Bound, err)
	if err != nil {
		if !errors.Is(err, worker.ErrFull) && !errors.Is(err, worker.ErrTaken) {
			t.Errorf("Claim: %v", err)
		}
		return
	}
	checkClaim(t, req, r)
	before := m.owner[r.Number]
	switch {
	case before != nil && before == n.last && n.file != nil:
		// The same directory: its process is gone, and the file says where it stopped.
		before.limit = min(before.limit, n.file.Inner)
	case before != nil && before.node.last == before && before.node.claim.Version != "" && m.fixed:
		t.Errorf("number %d is held by a process that lives", r.Number)
	}
	if end := m.end(r.Number); r.Floor < end {
		t.Errorf("number %d was issued from below %d, and its next owner starts at %d", r.Number, end, r.Floor)
	}
	m.issued[r.Number] = m.end(r.Number)
	n.claim, n.last = r, &modelClaim{node: n, limit: r.Bound}
	m.owner[r.Number] = n.last
	n.file = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: min(r.Bound, max(r.Floor, m.now+3000))}
}

func (m *lives) renews(t *testing.T, n *modelNode) {
	t.Helper()
	r, err := n.process.Renew(ctx(t), n.claim, m.now+horizon)
	m.note("%s renews %d: %d, %v", n.address, n.claim.Number, r.Bound, err)
	owns := m.owner[n.claim.Number] == n.last
	switch {
	case err == nil && !owns:
		t.Errorf("renewed a lost claim of number %d", n.claim.Number)
	case err == nil:
		n.claim, n.last.limit = r, r.Bound
		n.file.Inner = min(r.Bound, max(n.file.Inner, m.now+3000))
	case owns || !errors.Is(err, worker.ErrLost):
		t.Errorf("Renew: %v", err)
	default:
		n.claim = worker.Record{}
	}
}

func (m *lives) stops(t *testing.T, n *modelNode) {
	t.Helper()
	end := max(n.claim.Floor, min(n.claim.Bound, m.now))
	err := n.process.Release(ctx(t), n.claim, end)
	m.note("%s releases %d at %d: %v", n.address, n.claim.Number, end, err)
	owns := m.owner[n.claim.Number] == n.last
	switch {
	case err == nil && !owns:
		t.Errorf("released a lost claim of number %d", n.claim.Number)
	case err == nil:
		n.last.limit = end
	case owns || !errors.Is(err, worker.ErrLost):
		t.Errorf("Release: %v", err)
	}
	n.claim = worker.Record{}
	n.process.die(t)
}
