package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// Claim implements worker.Registry. An identity whose child we wrote last is taken
// in one multi. Else its owner node comes first, and then the child, so that a crash
// in between leaves a child that the next claim of the address finds.
func (o *Original) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if _, _, err := splitAddress(req.Address); err != nil {
		return worker.Record{}, err
	}
	if req.Nonce == "" {
		return worker.Record{}, leaf.BadField("nonce", "", "must not be empty")
	}
	// Each round that changes nothing lost against the write of another process, and ctx
	// bounds all of them.
	for {
		r, err := o.claim(ctx, req)
		if !errors.Is(err, errMoved) {
			return r, err
		}
		if errors.Is(err, zk.ErrNoNode) { // perhaps a folder was deleted beside the namespace, which open does not look for
			if err := o.ensureAll(ctx, o.owners(), o.temporary()); err != nil {
				return worker.Record{}, err
			}
		}
	}
}

// attempt is one round of a claim.
type attempt struct {
	*Original

	req      worker.Request
	ns       *namespace
	own      owner
	presence *presence
	siblings []string // the children of forever, as find saw them
}

func (o *Original) claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	a := attempt{Original: o, req: req}
	var err error
	if a.ns, err = o.open(ctx, req.Namespace, &req); err != nil {
		return worker.Record{}, err
	}
	if err := a.ns.Reach(req, o.Info()); err != nil {
		return worker.Record{}, err
	}
	if a.own, err = o.readOwner(ctx, req.Address); err != nil {
		return worker.Record{}, a.unknown(a.own.path, err)
	}
	if a.presence, err = o.readPresence(ctx, o.present(req.Address)); err != nil {
		return worker.Record{}, err
	}
	held := a.own.heldBy(req.Nonce)
	if err := a.refuse(held); err != nil {
		return worker.Record{}, err
	}
	switch back, err := a.setBack(ctx); {
	case err != nil:
		return worker.Record{}, err
	case back: // the next round reads the namespace again
		return worker.Record{}, cmp.Or(o.postpone(ctx, o.namespace(), a.ns, max(req.QuietNow(), req.Previous.Quiet)), errMoved)
	}
	c, err := a.find(ctx)
	if err != nil {
		return worker.Record{}, err
	}
	halfway := c != nil && a.own.Creating && c.stat.Version == 0 // ours, if its creator ended right after
	twin := ""
	if c != nil {
		twin = a.twin(c.name, c.number)
	}
	switch {
	case halfway && held && (a.mistaken(c.number) || twin != ""):
		return worker.Record{}, a.drop(ctx, c)
	case halfway && held && !a.inRange(c.number):
		return worker.Record{}, a.giveUp(ctx, c.name, c.number)
	case c != nil && !a.inRange(c.number) && !halfway:
		return worker.Record{}, a.outside(fmt.Sprintf("%s has number %d", a.childPath(c.name), c.number))
	case twin != "" && !halfway:
		return worker.Record{}, a.shared(c, twin)
	case c != nil && a.own.wrote(c) && held && a.own.Claimed:
		r := a.own.record(c) // made by an earlier call whose answer was lost
		r.After = a.after(r.Floor)
		r.Floor = max(r.Floor, a.ns.IssueFrom)
		r.Bound, r.Incarnation = max(r.Bound, r.Floor), a.ns.Incarnation
		return r, nil
	case c != nil && a.own.wrote(c):
		return a.takeOver(ctx, c)
	case !held:
		return worker.Record{}, a.hold(ctx, c) // errMoved: the next round finds it held
	case c == nil:
		return a.fresh(ctx)
	}
	return a.adopt(ctx, c)
}

// refuse returns worker.ErrTaken if the identity is that of another process, which may be alive.
func (a *attempt) refuse(held bool) error {
	own := &a.own
	if held || own.node == nil || own.Released || own.Nonce == "" {
		return nil
	}
	if prev := a.req.Previous; prev != nil && prev.Made(own.Nonce) {
		return nil // this directory's last process, which is gone
	}
	if a.presence != nil && a.presence.Nonce == own.Nonce {
		return fmt.Errorf("%w: %s is in use, or was until less than %v ago; two processes cannot share an address",
			worker.ErrTaken, a.req.Address, a.cfg.SessionTimeout)
	}
	return nil
}

// find returns the child of our address, nil if there is none. One whose number lies
// outside the range is returned if there is no other.
func (a *attempt) find(ctx context.Context) (*numbered, error) {
	names, err := a.children(ctx, a.forever())
	if err != nil {
		return nil, err
	}
	a.siblings = slices.Clone(names)
	prefix := a.req.Address + "-"
	names = slices.DeleteFunc(names, func(name string) bool {
		_, _, ok := parseChild(name)
		return !ok || !strings.HasPrefix(name, prefix)
	})
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names) // by number: all are equally long
	name := names[0]
	for _, n := range names {
		if _, number, _ := parseChild(n); a.inRange(number) {
			name = n
			break
		}
	}
	if slices.Contains(names, a.own.Node) {
		name = a.own.Node
	}
	c, err := a.readChild(ctx, name)
	return c, a.unknown(a.childPath(name), err)
}

// twin returns another child with the number of the child name, "" if there is none. ZooKeeper gives a number that a child
// has where forever was copied: it counts the children that the copy has made.
func (a *attempt) twin(name string, number int64) string {
	for _, other := range a.siblings {
		if _, n, ok := parseChild(other); ok && n == number && other != name {
			return other
		}
	}
	return ""
}

// shared returns worker.ErrTaken for our child, whose number another one has.
func (a *attempt) shared(c *numbered, twin string) error {
	return fmt.Errorf("%w: the address of %s has the same worker ID as this node's %s. ZooKeeper gives a number again where nodes were copied into it "+
		"one by one, and a Java server does not notice it. Stop every other process with the address %s, and then, %s: this node then gets another worker ID",
		worker.ErrTaken, twin, c.name, a.req.Address, deleteAll(a.childPath(c.name)))
}

// unknown returns worker.ErrDamaged for a node of our address at p that cannot be read.
// worker.ErrForeign would refuse the start of the process, although only this address is unusable.
func (a *attempt) unknown(p string, err error) error {
	if !errors.Is(err, worker.ErrForeign) {
		return err
	}
	cure := fmt.Sprintf("If a newer version of leaf wrote it, update this node; if not, stop every process with the address %s, and then, %s", a.req.Address, deleteAll(p))
	return fmt.Errorf("%w: %v. %s", worker.ErrDamaged, err, cure) //nolint:errorlint // err must not make it ErrForeign
}

func (a *attempt) inRange(number int64) bool {
	return a.req.Numbers.Lo <= number && number < a.req.Numbers.Hi
}

func (a *attempt) outside(what string) error {
	return fmt.Errorf("%w: %s, and this node may use %d to %d; numbers are counted up by ZooKeeper and not reused, "+
		"so when they are used up stop all nodes of this name, and Java servers for good, "+worker.LongestWait+", and start the nodes with zookeeper-recycle",
		worker.ErrFull, what, a.req.Numbers.Lo, a.req.Numbers.Hi-1)
}

// takeOver takes a child that we, or an earlier process of ours, wrote last. It may be
// used from T on, or from where the file of the same data directory says, unless that
// lies below what the owner had issued when it renewed last: then it is an old copy.
func (a *attempt) takeOver(ctx context.Context, c *numbered) (worker.Record, error) {
	own, prev := &a.own, a.req.Previous
	bound := max(own.Bound, c.timestamp)
	floor := bound
	mine := prev != nil && !own.Released && own.Claimed && prev.Made(own.Nonce) && prev.Number == c.number
	if mine && prev.Inner >= own.Floor {
		floor = min(bound, prev.Inner)
	}
	return a.finish(ctx, c, max(floor, a.ns.IssueFrom), bound)
}

// after says which owner had issued, or may have issued, up to a floor: the last one of our
// address, or "" if the floor is the namespace's.
func (a *attempt) after(floor int64) string {
	if floor > a.ns.IssueFrom {
		return a.req.Address
	}
	return ""
}

// hold puts our nonce into the znode that names the owner of our address. The rest of that
// znode, which the last owner wrote, stays until we have a number. A child that was read in a new session, at a server that
// is behind, would look like that of a Java server, and what we wrote last would be lost with its Claimed: c is compared.
func (a *attempt) hold(ctx context.Context, c *numbered) error {
	record := a.own.ownerRecord
	record.Format, record.Nonce, record.Claimed, record.Released = format, a.req.Nonce, false, false
	ops, err := a.ownerOps(ctx, record)
	if err != nil {
		return err
	}
	if c != nil {
		ops = append(ops, unchanged(a.childPath(c.name), c.stat.Version))
	}
	if _, err := a.change(ctx, a.own.path, ops...); err != nil {
		return err
	}
	return errMoved
}

// ownerOps returns the operations that write the owner node, in the namespace as
// we have read it, perhaps from a server that is behind, with our guard and our presence.
func (a *attempt) ownerOps(ctx context.Context, record ownerRecord) ([]any, error) {
	guards, err := a.replaceGuards(ctx, a.own, record.Nonce)
	if err != nil {
		return nil, err
	}
	ops := []any{exists(a.ns.guard), unchanged(a.namespace(), a.ns.version)}
	if a.own.node == nil {
		ops = append(ops, create(a.own.path, encode(record)))
	} else {
		ops = append(ops, set(a.own.path, encode(record), a.own.node.stat.Version))
	}
	ops = append(ops, guards...)
	if a.presence == nil || a.presence.Nonce != a.req.Nonce {
		ops = append(ops, replacePresence(a.present(a.req.Address), a.presence, presenceRecord{
			Format: format, Address: a.req.Address, Nonce: a.req.Nonce, Number: record.Number,
		})...)
	}
	return ops, nil
}

// finish writes the child and the owner node in one multi.
func (a *attempt) finish(ctx context.Context, c *numbered, floor, bound int64) (worker.Record, error) {
	// The namespace of our last claim is gone, and what it knew (rule U).
	if prev := a.req.Previous; prev != nil && prev.Incarnation != a.ns.Incarnation {
		floor = max(floor, prev.Quiet)
		if prev.Incarnation != "" {
			floor = max(floor, a.req.QuietNow())
		}
		bound = max(bound, floor)
	}
	record := ownerRecord{
		Format: format, Nonce: a.req.Nonce, Claimed: true,
		Node: c.name, NodeVersion: c.stat.Version + 1, NodeCzxid: c.stat.Czxid,
		Number: c.number, Floor: floor, Bound: max(bound, a.req.BoundFor(floor)),
	}
	data, err := endpointData(a.req.Address, record.Bound)
	if err != nil {
		return worker.Record{}, err
	}
	ops, err := a.ownerOps(ctx, record)
	if err != nil {
		return worker.Record{}, err
	}
	// A child of another forever than the namespace's would have a number that counts
	// anew. One that is deleted after this look takes its children along.
	forever, err := a.get(ctx, a.forever())
	if err != nil {
		return worker.Record{}, err
	}
	if forever == nil || forever.stat.Czxid != a.ns.forever {
		return worker.Record{}, errMoved
	}
	p := a.childPath(c.name)
	if _, err := a.change(ctx, p, append(ops, set(p, data, c.stat.Version))...); err != nil {
		return worker.Record{}, err
	}
	o := a.Original
	o.mu.Lock()
	delete(o.watching, p)
	o.mu.Unlock()
	v := versions{node: c.stat.Version + 1, czxid: c.stat.Czxid}
	if a.own.node != nil {
		v.owner = a.own.node.stat.Version + 1
	}
	r := record.record(a.req.Address, v)
	r.Incarnation, r.After = a.ns.Incarnation, a.after(r.Floor)
	return r, nil
}
