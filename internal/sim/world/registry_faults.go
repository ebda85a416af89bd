package world

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// The kinds of faults of registries.
const (
	CommitUnknown  Kind = "registry commits and says that it failed"
	ClaimDeleted   Kind = "claim deleted"
	ClaimTaken     Kind = "nonce of a claim overwritten"
	ClaimFreed     Kind = "number released by an operator while its owner lives"
	RegistryWiped  Kind = "registry wiped"
	RecordsDeleted Kind = "all records of worker IDs deleted, the namespace kept"
	RegistryOld    Kind = "registry restored from a backup"
	CommitsLost    Kind = "registry failed over to a replica that misses commits"
	SessionGone    Kind = "session expired while its owner lives"
	SessionExpired Kind = "session expires late"
	ReadInParts    Kind = "a claim and its T read at two moments, with a write between"
)

// Backup is what a registry held at a moment: a dump of it, or a replica that has
// stopped to follow.
type Backup struct {
	restore func()
	last    map[int64]worker.Record
}

// Backup returns what the registry holds now.
func (r *Registry) Backup() *Backup { return &Backup{r.memory.Backup(), maps.Clone(r.last)} }

// DeleteClaim deletes the claim of a number; its T stays. It reports whether there
// was one.
func (r *Registry) DeleteClaim(number int64) bool {
	was, ok := r.last[number]
	if !ok || was.Nonce == "" {
		return false
	}
	r.Faults.Hit(ClaimDeleted)
	r.memory.DeleteClaim(number)
	r.note(nil, worker.Record{Number: number, Bound: was.Bound})
	return true
}

// Overwrite puts another nonce into a claim; T stays.
func (r *Registry) Overwrite(number int64, nonce string) bool {
	was, ok := r.last[number]
	if !ok {
		return false
	}
	r.Faults.Hit(ClaimTaken)
	r.memory.Overwrite(number, nonce)
	was.Nonce = nonce
	r.note(nil, was)
	return true
}

// Wipe deletes everything.
func (r *Registry) Wipe() {
	r.Faults.Hit(RegistryWiped)
	r.memory.Wipe()
	r.last, r.sessions = map[int64]worker.Record{}, nil
}

// Forget deletes the records of all numbers, but not the namespace.
func (r *Registry) Forget() {
	r.Faults.Hit(RecordsDeleted)
	r.memory.Forget()
	r.last = map[int64]worker.Record{}
}

// DropNamespace deletes the namespace, but nothing of the numbers: an operator does it.
func (r *Registry) DropNamespace() { r.memory.Rename() }

// Lost is a number whose T has gone back.
type Lost struct{ Number, From, To int64 }

// Restore takes the registry back to b: kind says whether that is CommitsLost or
// RegistryOld. It returns what was lost.
func (r *Registry) Restore(b *Backup, kind Kind) (lost []Lost) {
	r.Faults.Hit(kind)
	for _, n := range r.Numbers() {
		if from, to := r.last[n].Bound, b.last[n].Bound; to < from {
			lost = append(lost, Lost{n, from, to})
		}
	}
	b.restore()
	r.last = maps.Clone(b.last)
	return lost
}

// ExpireSession ends an announcement although its owner lives, if there is one.
func (r *Registry) ExpireSession() bool {
	if len(r.sessions) == 0 {
		return false
	}
	r.Faults.Hit(SessionGone)
	i := r.s.Rand().IntN(len(r.sessions))
	r.sessions = slices.Delete(r.sessions, i, i+1)
	return true
}

// Free is the operator's release of a number, by the pool's own rules, on a terminal
// beside the server.
func (r *Registry) Free(number int64) error {
	return worker.NewPool(beside{r.inside, r}).Free(context.Background(), number)
}

// beside is a handle without a network.
type beside struct {
	worker.Records

	registry *Registry
}

func (b beside) Put(ctx context.Context, record worker.Record) (string, error) {
	version, err := b.Records.Put(ctx, record)
	if err == nil {
		b.registry.note(nil, record)
	}
	return version, err
}

// Init declares the namespace new, as `leaf worker init` does.
func (r *Registry) Init(ns worker.Namespace) error {
	return worker.NewPool(beside{r.inside, r}).Init(context.Background(), ns)
}

// Hold gives a number to a node of which this simulation knows nothing else, until a
// moment.
func (r *Registry) Hold(number int64, ns worker.Namespace, now, until int64) error {
	name := fmt.Sprintf("10.8.8.%d:8080", number%250)
	_, err := worker.NewPool(beside{r.inside, r}).Claim(context.Background(), worker.Request{
		Namespace: ns, Address: name, Nonce: "holder of " + name,
		Numbers: leaf.Range{Lo: number, Hi: number + 1}, Now: now, Bound: until,
	})
	return err
}
