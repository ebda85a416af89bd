package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// fresh creates a child. The number is ZooKeeper's; one that a Java server may run with
// without having it is skipped, and so is a number that another child has.
func (a *attempt) fresh(ctx context.Context) (worker.Record, error) {
	floor := a.ns.IssueFrom
	data, err := endpointData(a.req.Address, max(floor, a.req.Now))
	if err != nil {
		return worker.Record{}, err
	}
	// With the owner node as we have read it: a request that is still on its way when
	// we have given up cannot make a second child later.
	record := a.own.ownerRecord
	record.Creating = true
	results, err := a.change(ctx, a.forever(),
		exists(a.ns.guard),
		set(a.own.path, encode(record), a.own.node.stat.Version),
		createNumbered(a.childPath(a.req.Address+"-"), data))
	if err != nil {
		return worker.Record{}, err
	}
	a.own.ownerRecord = record
	a.own.node.stat.Version++
	p := results[len(results)-1].String
	p = p[strings.LastIndexByte(p, '/')+1:]
	_, number, ok := parseChild(p)
	switch {
	case !ok:
		return worker.Record{}, fmt.Errorf("%w: ZooKeeper made the child %q", worker.ErrForeign, p)
	case a.mistaken(number) || a.twin(p, number) != "":
		return worker.Record{}, a.drop(ctx, &numbered{name: p})
	case !a.inRange(number):
		return worker.Record{}, a.giveUp(ctx, p, number)
	}
	c, err := a.readChild(ctx, p)
	if err != nil {
		return worker.Record{}, err
	}
	if c == nil || c.stat.Version != 0 {
		return worker.Record{}, errMoved // another process was here; the next round watches it
	}
	known, err := a.highestBound(ctx, number)
	if err != nil {
		return worker.Record{}, err
	}
	floor = max(floor, known)
	return a.finish(ctx, c, floor, floor)
}

// mistaken reports whether a Java server may run with number without having it. In its first run at an address it runs as 0 if it
// made forever, and else as what stands between the first two hyphens of its path, which may be in the name.
func (o *Original) mistaken(number int64) bool {
	if parts := strings.Split(o.cfg.Name, "-"); len(parts) > 2 {
		if n, err := strconv.ParseInt(parts[1], 10, 64); err == nil && n == number {
			return true
		}
	}
	return number == 0
}

// drop deletes a child that was just created, and lets the claim go on.
func (a *attempt) drop(ctx context.Context, c *numbered) error {
	p := a.childPath(c.name)
	if _, err := a.change(ctx, p, exists(a.own.guard(a.req.Nonce)), remove(p, 0)); err != nil {
		return err
	}
	return errMoved
}

// giveUp deletes a child that was just created and may not be used, and our owner
// node if no node had it before.
func (a *attempt) giveUp(ctx context.Context, name string, number int64) error {
	full := a.outside(fmt.Sprintf("the next number is %d", number))
	guards, err := a.replaceGuards(ctx, a.own, "")
	if err != nil {
		return errors.Join(full, err)
	}
	ops := append([]any{remove(a.childPath(name), 0)}, guards...)
	if a.own.Node == "" {
		ops = append(ops, remove(a.own.path, a.own.node.stat.Version))
	} else {
		record := a.own.ownerRecord
		record.Nonce, record.Released, record.Creating = "", true, false
		ops = append(ops, set(a.own.path, encode(record), a.own.node.stat.Version))
	}
	_, err = a.change(ctx, a.childPath(name), ops...)
	if err == nil {
		err = a.withdraw(ctx, a.present(a.req.Address), worker.Peer{Nonce: a.req.Nonce})
	}
	if err != nil && !errors.Is(err, errMoved) {
		return errors.Join(full, err)
	}
	return full
}

// adopt takes a child that we did not write last, after no other process has written it
// for as long as the configuration says. The time counts over several calls.
func (a *attempt) adopt(ctx context.Context, c *numbered) (worker.Record, error) {
	if err := a.atOnce(ctx, a.own, c); err != nil {
		return worker.Record{}, err
	}
	p := a.childPath(c.name)
	since, written := a.watch(p, c)
	if written {
		return worker.Record{}, fmt.Errorf("%w: %s is being written by another process, such as a Java server with this address", worker.ErrTaken, p)
	}
	left := a.cfg.adoptWatch - time.Since(since)
	if deadline, ok := ctx.Deadline(); ok && left > 0 && time.Until(deadline) <= left {
		return worker.Record{}, fmt.Errorf("%w: perhaps: %s was not written by this program; it is watched for another %v",
			worker.ErrTaken, p, left.Round(time.Millisecond))
	}
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
			return worker.Record{}, errMoved // look again
		case <-ctx.Done():
			return worker.Record{}, fmt.Errorf("watch %s: %w", p, ctx.Err())
		}
	}
	known, err := a.highestBound(ctx, c.number)
	if err != nil {
		return worker.Record{}, err
	}
	floor := max(c.timestamp+javaLag, a.ns.IssueFrom, known)
	return a.finish(ctx, c, floor, floor)
}

// watch returns since when this process knows the child in its present state, and
// whether it knew it in another one before.
func (o *Original) watch(p string, c *numbered) (since time.Time, written bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, known := o.watching[p]
	if !known || w.czxid != c.stat.Czxid || w.version != c.stat.Version {
		written = known
		w = watched{czxid: c.stat.Czxid, version: c.stat.Version, since: time.Now()}
		o.watching[p] = w
	}
	return w.since, written
}

// highestBound returns the highest T that the owner nodes know of number. Those of
// other addresses know none unless forever was deleted, so that ZooKeeper counts
// from 0 again.
func (a *attempt) highestBound(ctx context.Context, number int64) (int64, error) {
	all, err := a.listOwners(ctx)
	if err != nil {
		return 0, err
	}
	highest := boundOf(all, number)
	for _, own := range all {
		if own.damage != "" {
			highest = max(highest, a.req.QuietNow()) // it may have had this number: whatever it was, its owner has stopped by then
		}
	}
	return highest, nil
}

// boundOf returns the highest T of number among owner nodes, 0 if none has it.
func boundOf(all []owner, number int64) (highest int64) {
	for _, own := range all {
		if own.Node != "" && own.Number == number {
			highest = max(highest, own.Bound)
		}
	}
	return highest
}

// setBack reports whether the registry holds a lower T of the number that this process has lost than it had
// recorded for it, or none: the servers were set back, and fresh numbers may have been given since (rule U). It
// is false once the namespace was told.
func (a *attempt) setBack(ctx context.Context) (bool, error) {
	prev := a.req.Previous
	if prev == nil || prev.Incarnation != a.ns.Incarnation || a.ns.IssueFrom >= prev.Quiet {
		return false, nil
	}
	all, err := a.listOwners(ctx)
	if err != nil {
		return false, err
	}
	highest := boundOf(all, prev.Number)
	names, err := a.children(ctx, a.forever())
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if _, number, ok := parseChild(name); !ok || number != prev.Number {
			continue
		}
		switch c, err := a.readChild(ctx, name); {
		case errors.Is(err, worker.ErrForeign):
			return false, nil // nothing tells its T
		case err != nil:
			return false, err
		case c != nil:
			highest = max(highest, c.timestamp)
		}
	}
	return highest < prev.Bound, nil
}
