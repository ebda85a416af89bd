package sim

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// SharedNumber is two nodes that the configuration gave one static number.
const SharedNumber world.Kind = "two nodes with one static number"

// allowed says that IDs of a number may repeat in a time, because of a fault that no
// node can notice (rule L; docs/GUARANTEES.md).
type allowed struct {
	kind   world.Kind
	number int64
	lo, hi int64 // ms, half-open
}

// allowedFor returns the kind of fault by which IDs of a number may repeat in some
// moment from lo to hi, "" if there is none.
func (m *snowflakeMode) allowedFor(number, lo, hi int64) world.Kind {
	i := slices.IndexFunc(m.allowed, func(a allowed) bool { return a.number == number && a.lo <= hi && lo < a.hi })
	if i < 0 {
		return ""
	}
	return m.allowed[i].kind
}

// allow adds an allowed violation.
func (m *snowflakeMode) allow(kind world.Kind, number, lo, hi int64) {
	m.w.sched.Note("nemesis", "allowed: "+string(kind), number, lo, hi)
	if !slices.ContainsFunc(m.allowed, func(a allowed) bool { return a.kind == kind }) {
		m.w.ledger.allowed = append(m.w.ledger.allowed, AllowedViolation{Kind: kind, Mode: "snowflake", Covers: func(_, _ *Node, _ Series, id int64) bool {
			p, err := m.layout.Decode(id)
			at := m.layout.Millis(p.Unit)
			return err == nil && slices.ContainsFunc(m.allowed, func(a allowed) bool {
				return a.kind == kind && a.number == p.Worker && a.lo <= at && at < a.hi
			})
		}})
	}
	m.allowed = append(m.allowed, allowed{kind, number, lo, hi})
	if kind != SharedNumber { // that shows without it
		m.rush()
	}
}

// cloned is told that c's machine is a copy of from's, which is not the same any more
// as when it was made. The copy has the same configuration; if that gives it a static
// number, both issue with it for ever.
func (m *snowflakeMode) cloned(c, from *claimant) {
	c.index, c.nodeID, c.side = from.index, from.nodeID, from.side
	maps.Copy(c.acked, from.acked)
	maps.Copy(c.files.nonces, from.files.nonces)
	if s := m.sides[c.side]; s.registry == nil {
		m.allow(SharedNumber, m.mine(c, s).Lo, 0, math.MaxInt64)
	}
}

// read is called with the content that a process reads from its worker file, nil for a
// missing file. A content that the node did not write is an older copy of the file, or the
// file of another machine.
//
// A process that believes an old file issues again from the t in that file on. It may repeat
// IDs up to where the number was issued since, or, if the number had another owner since, up to
// the T in the file. A registry knows better if the owner has renewed since. So the file is
// believed if there is no registry, if the owner had not renewed, or if the registry does not
// answer: see notedDisk.Replace.
func (m *snowflakeMode) read(e *holder, content []byte) {
	c := e.node
	if c.files.mayBe(content) {
		return
	}
	copied := c.files.written == nil && c.ClonedFrom != nil
	if !copied {
		c.files.written, c.files.tried = content, nil
	}
	if copied {
		for _, nonce := range asked(content) { // the other machine may have claimed with it since
			c.files.nonces[nonce] = true
		}
	}
	r, ok := readRecord(content)
	if !ok || !sound(content) {
		// Nothing is left of what a static number has issued. The quiet time is meant for
		// that, and is too short if the clock was ahead, or is behind.
		if number := m.mine(c, e.side).Lo; e.side.registry == nil && c.inner[number] > e.proc.Wall().Add(m.ahead).UnixMilli() {
			m.allow(world.FileOlder, number, 0, c.inner[number])
		}
		return
	}
	c.stale = &r
	record, found := m.record(r.number)
	owned := found && record.Nonce != "" && bytes.Contains(content, []byte(`"`+record.Nonce+`"`)) && record.Floor <= r.inner
	hi := max(r.bound, c.inner[r.number])
	if copied && owned { // the copy takes the number over; the origin goes on until it notices, below its T
		hi = max(hi, record.Bound+e.side.horizon.Milliseconds())
	}
	kind := world.FileOlder
	if copied {
		kind = world.MachineCloned
	}
	e.believes = func() { m.allow(kind, r.number, r.inner, hi) }
	if owned || e.side.registry == nil {
		e.believes()
		e.believes = nil
	}
}
