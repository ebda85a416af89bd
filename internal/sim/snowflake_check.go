package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/worker"
)

// number is what was issued with a worker ID.
type number struct{ spans []*span }

// span is the time for which one generator has issued.
type span struct {
	by      *holder
	session int64
	lo, hi  int64 // units, closed
}

// latest is the last ID that a client got.
type latest struct{ session, id int64 }

// took checks IDs that a client got.
func (m *snowflakeMode) took(e *holder, ids []leaf.Range, last *latest) {
	for _, r := range ids {
		m.check(e, r, last)
		e.node.Issued(e.side.series(), r)
	}
}

func (m *snowflakeMode) check(e *holder, r leaf.Range, last *latest) {
	c := e.node
	if e.stray {
		m.w.Failf("%s issued %v with another layout than that of the registry", c.Name, r)
	}
	p, err := m.layout.Decode(r.Lo)
	end, err2 := m.layout.Decode(r.Hi - 1)
	switch {
	case cmp.Or(err, err2) != nil || r.Len() < 1:
		m.w.Failf("%s issued %v: %v", c.Name, r, cmp.Or(err, err2))
	case p.Worker != end.Worker || p.Unit != end.Unit || p.Datacenter != m.datacenter:
		m.w.Failf("%s issued %v: from %+v to %+v", c.Name, r, p, end)
	}
	at := m.layout.Millis(p.Unit)
	bound, known := c.acked[p.Worker]
	status := e.Status()
	floor, claimed := e.floors[p.Worker]
	claimed = claimed && status.Confirmed // else the answer was lost, and it goes on from its file, below the T of that
	switch inner, written := c.inner[p.Worker]; {
	case e.side.kind == worker.Fixed && (!written || at >= inner):
		m.w.Failf("%s issued with number %d at %s, and its file has no t above that but %s", c.Name, p.Worker, clock(at), clock(inner))
	case e.side.registry != nil && !known:
		m.w.Failf("%s issued with number %d, which it never claimed", c.Name, p.Worker)
	case e.side.registry != nil && at >= bound:
		m.w.Failf("%s issued with number %d at %s, and the registry never held a T above that for it but %s", c.Name, p.Worker, clock(at), clock(bound))
	case claimed && at < floor && m.allowedFor(p.Worker, at, at) == "":
		m.w.Failf("%s issued with number %d at %s, below the floor %s of its claim", c.Name, p.Worker, clock(at), clock(floor))
	}
	if claimed && e.unused[p.Worker] == e.side.wipes {
		if ns := e.side.registry.Namespace(); ns != nil && at < ns.IssueFrom {
			m.w.Failf("%s issued with number %d at %s, which had no T when it was claimed, and may be used from %s on", c.Name, p.Worker, clock(at), clock(ns.IssueFrom))
		}
	}
	session := status.Losses
	if session == last.session && r.Lo <= last.id { // another session may have another number
		m.w.Failf("%s issued %d to a client after %d", c.Name, r.Lo, last.id)
	}
	*last = latest{session, r.Hi - 1}
	m.span(e, session, p.Worker, p.Unit)
}

// span notes that a generator issued in a unit, which no other generator of the number
// may have between its first and its last one.
func (m *snowflakeMode) span(e *holder, session, worker, unit int64) {
	n := m.numbers[worker]
	if n == nil {
		n = &number{}
		m.numbers[worker] = n
	}
	i := len(n.spans) - 1
	for i >= 0 && (n.spans[i].by != e || n.spans[i].session != session) {
		i--
	}
	if i < 0 {
		i = len(n.spans)
		n.spans = append(n.spans, &span{by: e, session: session, lo: unit, hi: unit})
	}
	own := n.spans[i]
	own.lo, own.hi = min(own.lo, unit), max(own.hi, unit)
	for _, other := range n.spans {
		if other == own || other.hi < own.lo || own.hi < other.lo {
			continue
		}
		lo, hi := m.layout.Millis(max(own.lo, other.lo)), m.layout.Millis(min(own.hi, other.hi))
		kind := m.allowedFor(worker, lo, hi)
		if kind == "" {
			m.w.Failf("number %d: %s (life %d, session %d) issued from %s to %s and %s (life %d, session %d) from %s to %s", worker,
				e.node.Name, e.life, session, clock(m.layout.Millis(own.lo)), clock(m.layout.Millis(own.hi)),
				other.by.node.Name, other.by.life, other.session, clock(m.layout.Millis(other.lo)), clock(m.layout.Millis(other.hi)))
		}
		m.w.ledger.repeats[kind]++
		own.lo, own.hi = unit, unit // what comes is judged anew
		return
	}
}

// wrote is told of each write to a registry, at the moment of its effect.
func (m *snowflakeMode) wrote(s *side, by *world.RegistryHandle, before, after worker.Record) {
	owner := m.nonces[after.Nonce]
	lowered := after.Bound < before.Bound
	if by == nil {
		if lowered {
			m.w.Failf("number %d: the operator's release lowered T from %s to %s", after.Number, clock(before.Bound), clock(after.Bound))
		}
		return
	}
	c := m.of(by)
	claims := after.Nonce != before.Nonce || before.Released
	released := after.Released && after.Nonce == before.Nonce && owner == c
	switch {
	case owner != c:
		m.w.Failf("%s wrote a record of another nonce: %+v", c.Name, after)
	case lowered && !released:
		m.w.Failf("%s lowered T of number %d from %s to %s: %+v, before %+v", c.Name, after.Number, clock(before.Bound), clock(after.Bound), after, before)
	case claims && after.Released:
		m.w.Failf("%s released number %d, which it does not hold: %+v, before %+v", c.Name, after.Number, after, before)
	}
	switch inner, written := c.inner[after.Number]; {
	case claims:
		m.claimed(s, c, by, before, after)
	case released:
		m.checkRelease(c, before, after)
	case written && after.Bound < inner && c.now.proc == by.Process && m.allowedFor(after.Number, after.Bound, inner) == "":
		m.w.Failf("%s left T of number %d at %s, below the t of its file, %s", c.Name, after.Number, clock(after.Bound), clock(inner))
	}
	m.checkBound(s, c.by(by.Process), before, after)
	if released {
		c.acked[after.Number] = after.Bound
	} else {
		c.acked[after.Number] = max(c.acked[after.Number], after.Bound)
	}
}

// releaseSlack is how far T may lie above what a node has issued when it releases the
// number: what it took for calls that failed.
const releaseSlack = 20 * time.Second

// checkRelease fails if a release leaves T where it was, so that a successor waits for
// nothing.
func (m *snowflakeMode) checkRelease(c *claimant, before, after worker.Record) {
	issued := max(c.now.floors[after.Number], before.Floor, c.Machine.Wall().UnixMilli())
	if n := m.numbers[after.Number]; n != nil {
		for _, s := range n.spans {
			issued = max(issued, m.layout.Millis(s.hi+1))
		}
	}
	if after.Bound > issued+releaseSlack.Milliseconds() {
		m.w.Failf("%s released number %d with T at %s, and nothing was issued above %s: %+v", c.Name, after.Number, clock(after.Bound), clock(issued), after)
	}
}

// claimed checks where a new owner may start.
func (m *snowflakeMode) claimed(s *side, c *claimant, by *world.RegistryHandle, before, after worker.Record) {
	m.w.sched.Note(c.Name, "claims", after.Number, after.Floor, after.Bound)
	m.checkClock(s, c, by)
	own := before.Nonce != "" && !before.Released && c.files.nonces[before.Nonce]
	if other := m.nonces[before.Nonce]; own && other != c && other.Up() { // both machines have the file that names the claim
		m.allow(world.MachineCloned, after.Number, after.Floor, before.Bound)
	}
	least, floor := before.Bound, after.Floor
	switch {
	case own:
		least = before.Floor // its file says more exactly what was issued, but never less than this
	case before == worker.Record{} && s.registry.Namespace() != nil:
		// The record may be from before a wipe, late; its owner must notice.
		floor = max(floor, s.registry.Namespace().IssueFrom)
	}
	for _, a := range s.registry.Others {
		if a.Number != after.Number {
			continue
		}
		if least = max(least, a.Floor); a.Address != after.Address && !own {
			m.w.Failf("%s claimed number %d, which another program gave to %s", c.Name, after.Number, a.Address)
		}
	}
	if after.Floor < least {
		m.w.Failf("%s claimed number %d from %s on; the owner before may have issued up to %s: %+v, before %+v (own file: %v)",
			c.Name, after.Number, clock(after.Floor), clock(least), after, before, own)
	}
	st := c.now.Status()
	asks := !st.Confirmed && (st.Number == after.Number || own && before.Nonce == c.now.resumed)
	// A doubled call of the claim that it holds arrives late: the holder does not learn of it.
	late := st.Confirmed && st.Number == after.Number && c.files.nonces[after.Nonce]
	if c.now.proc == by.Process && !asks && !late {
		c.now.unused[after.Number] = -1
		if (before == worker.Record{}) {
			c.now.unused[after.Number] = s.wipes
		}
		c.now.floors[after.Number] = floor // else it goes on from its file, and only now asks whether it may
	}
	c.files.nonces[after.Nonce] = true
}

// checkClock fails if a process whose clock was far from that of all others from its
// beginning on got a number, though nothing kept it from asking them.
func (m *snowflakeMode) checkClock(s *side, c *claimant, by *world.RegistryHandle) {
	e := c.now
	if e.stray && by.Process == e.proc { // else it is a request of the process before, late
		m.w.Failf("%s claimed a number for another layout than that of the registry", c.Name)
	}
	early := m.w.sched.Elapsed()-e.began < 5*time.Second && e.began > m.troubled+2*time.Second
	if !m.asks || !early || by.Process != e.proc || !e.looked || e.proc.Stood() > 0 || e.boot.Abs() < time.Minute || c.Machine.Offset().Abs() < time.Minute {
		return
	}
	right := 0
	for _, peer := range s.registry.Announced() {
		switch o := m.at(peer.Clock); {
		case peer.Clock == c.Address, strings.HasPrefix(peer.Clock, worker.Doubtful):
		case o == nil || !o.Up() || o.Proc.Stood() > 0 || o.Machine.Offset().Abs() > time.Second:
			return // it may not answer, or be wrong, too
		case peer.Since < e.began: // else it may be listed only since the process looked
			right++
		}
	}
	if right > 0 {
		m.w.Failf("%s got a number though its clock is off by %v and %d peers could have told", c.Name, c.Machine.Offset(), right)
	}
}

// at returns the first node with an address.
func (m *snowflakeMode) at(address string) *claimant {
	i := slices.IndexFunc(m.nodes, func(c *claimant) bool { return c.Address == address })
	if i < 0 {
		return nil
	}
	return m.nodes[i]
}

// jumpSlack is how far a T may lie beyond the horizon by drifting clocks, steps below
// the limit, and late calls.
const jumpSlack = 3 * time.Minute

// checkBound fails if a T follows a clock that jumped while the process ran, and that
// the registry has not confirmed (rule F).
func (m *snowflakeMode) checkBound(s *side, e *holder, before, after worker.Record) {
	if m.asks {
		return // the peers may be wrong, too
	}
	c := e.node
	e.believe()
	most := m.now() + (s.horizon + jumpSlack + max(e.boot, 0)).Milliseconds()
	if after.Bound > max(most, after.Floor, before.Bound, c.acked[after.Number]) {
		m.w.Failf("%s raised T of number %d to %s, its clock is ahead by %v and was by %v when it started: %+v",
			c.Name, after.Number, clock(after.Bound), c.Machine.Offset(), e.boot, after)
	}
}

// elapsed is the time by which the engine judges its clock. It is asked at each look at the clock.
func (e *holder) elapsed() time.Duration {
	if e.looked {
		e.believe()
	}
	return e.proc.Elapsed()
}

// believe notes the offset of a clock that the engine may believe without peers: the clock
// jumped, and stood for what the jump is longer than the horizon. The engine also looks while its
// registry is away, so a clock that jumps twice in that time may be believed twice before the
// next T.
func (e *holder) believe() {
	if e.mode.asks {
		return // the peers decide
	}
	machine := e.node.Machine
	if off := machine.Offset(); off-max(e.boot, 0) <= machine.Stood()+e.side.horizon+10*time.Second {
		e.boot = max(e.boot, off)
	}
}

// longestClaim is how long a claim may take. It goes by the clock that it saw at its beginning.
const longestClaim = 2 * time.Second

// named is told that a namespace was amended, because a claim has created it or records are
// gone. If the registry was wiped before, the nodes that issued with its numbers must have
// stopped by IssueFrom, when other nodes begin to use them.
func (m *snowflakeMode) named(s *side, by *world.RegistryHandle, ns worker.StoredNamespace, sent time.Duration) {
	if s.wiped != nil && sent <= s.wipedAt {
		return // it cannot know of the loss: the node that reads the records next amends the namespace once more
	}
	wrong := s.wrong || m.of(by).Machine.Lowest(sent-longestClaim, sent) < -clocksRight
	for _, n := range sortedKeys(s.wiped) {
		if s.wiped[n] <= ns.IssueFrom {
			continue
		}
		if !wrong {
			m.w.Failf("a namespace was amended after a wipe whose numbers may be used from %s on; number %d was held until %s", clock(ns.IssueFrom), n, clock(s.wiped[n]))
		}
		m.allow(world.RegistryWiped, n, ns.IssueFrom, s.wiped[n])
	}
	if s.gone == nil {
		s.gone = map[int64]int64{}
	}
	for n, t := range s.wiped {
		s.gone[n] = max(s.gone[n], t)
	}
	if s.wiped == nil {
		s.wipes++ // amended once more: a node that has a number already does not wait for that
	}
	s.wiped, s.wrong = nil, false
}

// of returns whose handle it is.
func (m *snowflakeMode) of(by *world.RegistryHandle) *claimant {
	i := slices.IndexFunc(m.nodes, func(c *claimant) bool { return c.Machine == by.Process.Machine })
	return m.nodes[i]
}

// record returns what a registry holds of a number.
func (m *snowflakeMode) record(number int64) (worker.Record, bool) {
	for _, s := range m.sides {
		if s.registry != nil {
			if r, ok := s.registry.Record(number); ok {
				return r, true
			}
		}
	}
	return worker.Record{}, false
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05.000 (2006-01-02)") }

func sortedKeys[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }
