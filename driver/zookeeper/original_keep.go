package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/worker"
)

// versions are what a Record's Version says: the data versions of the owner node and
// of the child, and the child's birth.
type versions struct {
	owner, node int32
	czxid       int64
}

func (v versions) String() string { return fmt.Sprintf("%d.%d.%d", v.owner, v.node, v.czxid) }

func parseVersions(text string) (v versions, ok bool) {
	_, err := fmt.Sscanf(text, "%d.%d.%d", &v.owner, &v.node, &v.czxid)
	return v, err == nil && v.String() == text
}

// record is what the engine knows of an owner node.
func (r ownerRecord) record(address string, v versions) worker.Record {
	return worker.Record{
		Number: r.Number, Address: address, Nonce: r.Nonce, Floor: r.Floor, Bound: r.Bound,
		Released: r.Released, Version: v.String(),
	}
}

// record is the same of one whose child is in our state.
func (own *owner) record(c *numbered) worker.Record {
	return own.ownerRecord.record(c.address, versions{own.node.stat.Version, c.stat.Version, c.stat.Czxid})
}

// Renew implements worker.Registry.
func (o *Original) Renew(ctx context.Context, own worker.Record, bound int64) (worker.Record, error) {
	return o.rewrite(ctx, own, func(r *worker.Record) { r.Bound = max(r.Bound, bound) })
}

// Release implements worker.Registry. The child keeps its number, and its timestamp
// becomes floor, so that a Java server may follow at once.
func (o *Original) Release(ctx context.Context, own worker.Record, floor int64) error {
	_, err := o.rewrite(ctx, own, func(r *worker.Record) { r.Bound, r.Released = min(r.Bound, floor), true })
	return err
}

// rewrite changes our own record, in one multi that expects it as this process wrote
// it last. If it is not, an earlier call may have succeeded without an answer: what
// carries our nonce, in a child that no other process touched, was written by us. A call of
// ours that is still on its way cannot undo this one: it expects versions that are
// gone.
func (o *Original) rewrite(ctx context.Context, own worker.Record, change func(*worker.Record)) (worker.Record, error) {
	for {
		v, ok := parseVersions(own.Version)
		if !ok || own.Nonce == "" {
			return own, fmt.Errorf("%w: worker ID %d was not claimed here", worker.ErrLost, own.Number)
		}
		next := own
		change(&next)
		now := versions{v.owner + 1, v.node + 1, v.czxid}
		err := o.write(ctx, next, v)
		if err == nil {
			next.Version = now.String()
			return next, nil
		}
		if !errors.Is(err, errMoved) {
			return own, err
		}
		stored, err := o.reread(ctx, own)
		if err != nil {
			return own, err
		}
		if stored.Version == own.Version {
			return own, fmt.Errorf("worker ID %d: the registry refused version %q and then showed it", own.Number, own.Version)
		}
		stored.Bound = max(stored.Bound, own.Bound) // servers that were rolled back must learn again what they promised
		own = stored
	}
}

// write stores r if the versions are still v and its nonce is still the owner.
func (o *Original) write(ctx context.Context, r worker.Record, v versions) error {
	name := childName(r.Address, r.Number)
	data, err := endpointData(r.Address, r.Bound)
	if err != nil {
		return fmt.Errorf("%w: %w", worker.ErrLost, err)
	}
	own := owner{path: o.ownerPath(r.Address)}
	record := ownerRecord{
		Format: format, Nonce: r.Nonce, Claimed: true, Node: name, NodeVersion: v.node + 1, NodeCzxid: v.czxid,
		Number: r.Number, Floor: min(r.Floor, r.Bound), Bound: r.Bound, Released: r.Released,
	}
	ops := []any{exists(own.guard(r.Nonce)), set(own.path, encode(record), v.owner), set(o.childPath(name), data, v.node)}
	if r.Incarnation != "" {
		ops = append(ops, exists(o.namespace()+"/"+r.Incarnation))
	}
	results, err := o.change(ctx, own.path, ops...)
	if err == nil && results[2].Stat.Czxid != v.czxid {
		return fmt.Errorf("%w: %s was deleted and created again", worker.ErrLost, o.childPath(name))
	}
	return err
}

// reread returns our record as it is now, or worker.ErrLost. Its nodes are read one after the other. In between, when a
// leader is elected, a renewal of ours that was long on its way may arrive. Or the session ends, and the next one begins at a
// server that is behind, where the servers keep sessions of their own (localSessionsEnabled). Then it reads again.
func (o *Original) reread(ctx context.Context, own worker.Record) (worker.Record, error) {
	for {
		stored, moved, err := o.rereadOnce(ctx, own)
		if !moved {
			return stored, err
		}
	}
}

// rereadOnce is reread, and moved says that what it has read was not there at one moment.
func (o *Original) rereadOnce(ctx context.Context, own worker.Record) (record worker.Record, moved bool, err error) {
	lost := func(what string) (worker.Record, bool, error) {
		return own, false, fmt.Errorf("%w: worker ID %d %s", worker.ErrLost, own.Number, what)
	}
	if err := o.sync(ctx, o.root); err != nil {
		return own, false, err
	}
	stored, err := o.readOwner(ctx, own.Address)
	var c *numbered
	if err == nil {
		c, err = o.readChild(ctx, childName(own.Address, own.Number))
	}
	var guard *node
	if err == nil {
		guard, err = o.get(ctx, stored.guard(own.Nonce))
	}
	if err == nil && own.Incarnation != "" {
		var namespace *node
		if namespace, err = o.get(ctx, o.namespace()+"/"+own.Incarnation); err == nil && namespace == nil {
			return lost("was claimed in a namespace that is gone")
		}
	}
	switch {
	case errors.Is(err, worker.ErrForeign):
		return lost(err.Error())
	case err != nil:
		return own, false, err
	case stored.node == nil || c == nil:
		return lost("has no record any more")
	case stored.Released:
		return lost("was released")
	case stored.Nonce != own.Nonce:
		return lost("belongs to another process with the address " + own.Address)
	case guard == nil:
		return lost("has lost the node of its nonce")
	case !stored.Claimed || !stored.wrote(c):
		switch err := o.atOnce(ctx, stored, c); {
		case errors.Is(err, errMoved):
			return own, true, nil
		case err != nil:
			return own, false, err
		}
		return lost("was written by another process, such as a Java server with the address " + own.Address)
	}
	r := stored.record(c)
	r.Incarnation = own.Incarnation
	return r, false, nil
}

// Free implements worker.Registry. What belongs to a Java server cannot be freed. Several addresses have had
// one number if forever was deleted: each of them loses it, because only one of them still has it.
func (o *Original) Free(ctx context.Context, number int64) error {
	all, err := o.listOwners(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, own := range all {
		if own.Node == "" || own.Number != number {
			continue
		}
		found = true
		for err = o.free(ctx, own); errors.Is(err, errMoved); err = o.free(ctx, own) {
			address := strings.TrimPrefix(own.path, o.owners()+"/")
			if own, err = o.readOwner(ctx, address); err != nil {
				return err
			}
			if own.node == nil || own.Number != number {
				break // it has given the number up by itself
			}
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%w: %d is not recorded below %s", worker.ErrNotFound, number, o.owners())
	}
	return nil
}

// free takes the number from an owner. The error is errMoved if the owner has changed since it was read.
func (o *Original) free(ctx context.Context, own owner) error {
	record := own.ownerRecord
	record.Nonce, record.Released = "", true
	ops, err := o.replaceGuards(ctx, own, "")
	if err != nil {
		return err
	}
	_, err = o.change(ctx, own.path, append(ops, set(own.path, encode(record), own.node.stat.Version))...)
	return err
}

// listOwners returns all owner nodes. One that cannot be read keeps no other node from a
// claim.
func (o *Original) listOwners(ctx context.Context) ([]owner, error) {
	nodes, err := o.list(ctx, o.owners())
	if err != nil {
		return nil, err
	}
	all := make([]owner, len(nodes))
	for i, n := range nodes {
		all[i] = owner{path: o.ownerPath(n.name), node: n.node}
		if err := all[i].parse(); err != nil {
			all[i].ownerRecord, all[i].damage = ownerRecord{}, err.Error()
		}
	}
	return all, nil
}

// List implements worker.Registry. It returns the children of forever, those of Java
// servers with an empty nonce and a T that is their timestamp and 10 s, and the
// numbers whose child was deleted, of which only T is left. An owner node that cannot
// be read and has no child is a record of number -1.
func (o *Original) List(ctx context.Context) ([]worker.Record, error) {
	owners, err := o.listOwners(ctx)
	if err != nil {
		return nil, err
	}
	byNode := map[string]owner{}
	damage := map[string]string{} // by address
	for _, own := range owners {
		if own.damage != "" {
			damage[strings.TrimPrefix(own.path, o.owners()+"/")] = own.damage
		}
		if own.Node != "" {
			byNode[own.Node] = own
		}
	}
	children, err := o.list(ctx, o.forever())
	if err != nil {
		return nil, err
	}
	var records []worker.Record
	seen := map[int64]bool{}
	named := map[string]bool{} // the addresses of records with a damage
	for _, n := range children {
		address, number, ok := parseChild(n.name)
		if !ok {
			continue
		}
		timestamp, err := parseTimestamp(o.childPath(n.name), n.data)
		if err != nil {
			damage[address] = err.Error()
		}
		if damage[address] != "" {
			records = append(records, worker.Record{Number: number, Damage: damage[address]})
			named[address] = true
			delete(byNode, n.name)
			seen[number] = true
			continue
		}
		c := &numbered{node: n.node, name: n.name, address: address, number: number, timestamp: timestamp}
		own := byNode[n.name]
		delete(byNode, n.name)
		seen[number] = true
		if own.node != nil && own.wrote(c) {
			records = append(records, own.record(c))
			continue
		}
		records = append(records, worker.Record{Number: number, Address: address, Bound: max(own.Bound, timestamp+javaLag)})
	}
	for _, own := range byNode {
		if !seen[own.Number] {
			address, _, _ := parseChild(own.Node)
			records = append(records, worker.Record{Number: own.Number, Address: address, Bound: own.Bound})
		}
	}
	for address, why := range damage {
		if !named[address] {
			records = append(records, worker.Record{Number: -1, Damage: why})
		}
	}
	slices.SortFunc(records, func(a, b worker.Record) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Address, b.Address))
	})
	return records, nil
}
