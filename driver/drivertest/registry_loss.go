package drivertest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

var lossCases = []registryCase{
	{"claim deleted", claimDeleted},
	{"claim overwritten", claimOverwritten},
	{"record garbled", garbled},
	{"records deleted, namespace kept", forgotten},
	{"records deleted while a number gets its first one", forgottenBesideAClaim},
	{"records deleted after a release by the operator", forgottenAfterFree},
	{"namespace deleted, records kept", renamed},
	{"namespace of a clock that was years ahead", farNamespace},
	{"registry wiped", wiped},
	{"registry wiped before a claim creates the namespace", wipedBeforeNamed},
	{"registry wiped and declared anew", wipedAndDeclared},
}

var registryReadCases = []registryCase{
	{"an empty registry has no records and no peers", emptyRegistry},
	{"List shows what was written, by number", lists},
	{"peers", peers},
	{"a killed process is announced no longer", peerExpires},
}

// garbled: the number of a record that cannot be read is given to no process, and every
// other number can be claimed.
func garbled(t *testing.T, b *registryBench) {
	if b.Garble == nil {
		t.Skip("in this registry every record can be read")
	}
	owner, r := b.founded(t)
	b.Garble(t, r.Number)
	wantLost(t, owner, r)
	owner.die(t)
	next := b.start(t)
	again := b.request(address(2))
	again.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: b.now}
	if got := claim(t, next, again); got.Number == r.Number {
		t.Errorf("claim = %+v, whose record cannot be read", got)
	}
	b.now = max(b.now, r.Bound) + 10*margin
	if got := claim(t, b.start(t), b.request(address(3))); got.Number == r.Number {
		t.Errorf("claim after T = %+v, whose record cannot be read", got)
	}
	if err := next.Free(ctx(t), r.Number); !errors.Is(err, leaf.ErrConflict) && !errors.Is(err, worker.ErrNotFound) {
		t.Errorf("Free: %v; want ErrConflict", err)
	}
	all, err := next.List(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(r worker.Record) bool { return r.Damage != "" })
	if i < 0 || all[i] != (worker.Record{Number: r.Number, Damage: all[i].Damage}) {
		t.Errorf("List = %+v; want number %d with a damage and nothing else", all, r.Number)
	}
}

// claimDeleted: T outlives the claim (rule D).
func claimDeleted(t *testing.T, b *registryBench) {
	if b.DeleteClaim == nil {
		t.Skip("in this registry claim and T are one entry")
	}
	owner, r := b.founded(t)
	r, err := owner.Renew(ctx(t), r, r.Bound+3000)
	if err != nil {
		t.Fatal(err)
	}
	b.DeleteClaim(t, r.Number)
	wantLost(t, owner, r)
	owner.die(t)
	next := b.start(t)
	if kept, ok := stored(t, next, r.Number); !ok || kept.Bound != r.Bound || kept.Nonce != "" {
		t.Errorf("after the deletion of the claim the registry holds %+v, %v; want T %d", kept, ok, r.Bound)
	}
	// The nonce is gone, and with it the proof that a file is about this claim.
	early := b.heir(next, r)
	early.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: b.now}
	got, err := next.Claim(ctx(t), early)
	switch {
	case err != nil && !errors.Is(err, refusal(next)):
		t.Fatal(err)
	case err != nil:
		got = b.inherit(t, next, r)
	case next.Info().Kind == worker.Leased:
		t.Errorf("claim before T = %+v, although the owner may live", got)
	}
	if got.Number != r.Number || got.Floor < r.Bound {
		t.Errorf("claim = %+v; want number %d from T %d on", got, r.Number, r.Bound)
	}
}

func claimOverwritten(t *testing.T, b *registryBench) {
	if b.Overwrite == nil {
		t.Skip("a claim in this registry cannot be overwritten")
	}
	owner, r := b.founded(t)
	b.Overwrite(t, r.Number, "somebody else's")
	wantLost(t, owner, r)
	owner.die(t)
	next := b.start(t)
	if got := b.inherit(t, next, r); got.Floor < r.Bound {
		t.Errorf("claim = %+v; want a floor of at least T %d", got, r.Bound)
	}
}

// forgotten: the namespace knows how many numbers were given, so every claimer finds that
// records are gone. Their owners may live, so numbers without a record wait as after a
// wipe, once (rule U).
func forgotten(t *testing.T, b *registryBench) {
	b.needsPool(t)
	owner, r := b.founded(t)
	second := claim(t, b.start(t), b.request(address(2)))
	b.now += 1000
	b.Forget(t)
	var first int64
	for i := range 3 {
		req := b.request(address(3 + i))
		req.Quiet += int64(1000 * i)
		got := claim(t, b.start(t), req)
		if first = max(first, got.Floor); got.Floor < b.now+quiet || got.Floor > first {
			t.Errorf("claim %d after the loss of all records = %+v; want the floor %d, the same for all", i, got, b.now+quiet)
		}
	}
	wantLost(t, owner, r)
	wantLost(t, owner, second)
	b.now += quiet + 1000
	if got := claim(t, b.start(t), b.request(address(7))); got.Floor > b.now {
		t.Errorf("claim after the quiet time = %+v; want a floor of at most %d: the loss is over", got, b.now)
	}
}

// forgottenBesideAClaim: the record of a claim that is under way must not stand in for one
// that was deleted meanwhile. So Put counts it in the same operation (rule U).
func forgottenBesideAClaim(t *testing.T, b *registryBench) {
	_, r := b.founded(t)
	records := b.records(t)
	ns, err := records.Namespace(ctx(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Forget(t)
	other := worker.Record{Number: r.Number + 1, Address: address(2), Nonce: "other", Bound: b.now + horizon, Incarnation: ns.Incarnation}
	if _, err := records.Put(ctx(t), other); err != nil {
		t.Fatal(err)
	}
	if got := claim(t, b.start(t), b.request(address(3))); got.Floor < b.now+quiet {
		t.Errorf("claim = %+v; want the floor %d: the record of number %d is gone", got, b.now+quiet, r.Number)
	}
}

// forgottenAfterFree: an operator has released a number, which then has no nonce. What was read of it is not
// written over the claim of a process that took the number after its records were deleted, although both were
// written equally often, and nothing but the nonce may tell them apart.
func forgottenAfterFree(t *testing.T, b *registryBench) {
	b.declare(t, b.start(t))
	records := b.records(t)
	put := func(nonce, version string) (string, error) {
		return records.Put(ctx(t), worker.Record{Number: 7, Address: address(1), Nonce: nonce, Bound: b.now, Version: version})
	}
	must := func(nonce, version string) string {
		t.Helper()
		next, err := put(nonce, version)
		if err != nil {
			t.Fatalf("Put by %q with version %q: %v", nonce, version, err)
		}
		return next
	}
	freed := must("", must("first", ""))
	b.Forget(t)
	held := must("second", must("second", ""))
	for _, nonce := range []string{"third", ""} {
		if version, err := put(nonce, freed); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Put by %q with version %q = %q, %v; want ErrLost: the version is %q now", nonce, freed, version, err, held)
		}
	}
	must("second", held)
}

// renamed: what stands where the namespace was may have another layout, so a claim does
// not outlive its namespace.
func renamed(t *testing.T, b *registryBench) {
	if b.Reset == nil {
		t.Skip("the namespace of this registry cannot be deleted alone")
	}
	owner, r := b.founded(t)
	r, err := owner.Renew(ctx(t), r, r.Bound+1000)
	if err != nil || r.Incarnation == "" {
		t.Fatalf("Renew = %+v, %v; want a record with an incarnation", r, err)
	}
	other := b.start(t)
	b.Reset(t, other.Info().Reset)
	wantLost(t, owner, r)
	b.declare(t, other)
	wantLost(t, owner, r)
	if all, err := other.List(ctx(t)); err != nil || len(all) != 1 || all[0].Bound != r.Bound {
		t.Errorf("List = %+v, %v; want T %d", all, err, r.Bound)
	}
	// What prepares a registry at each start of a cluster must not end the wait for which an
	// administrator has deleted the namespace.
	b.now += 1000
	if got := claim(t, other, b.request(address(2))); got.Floor != b.now+quiet {
		t.Errorf("claim in a namespace that was deleted and declared = %+v; want the floor %d", got, b.now+quiet)
	}
}

// farNamespace: the first node has a clock that is years ahead. Its claim puts the moment from
// which all numbers may be used into the future. No later claim marks a number with that
// moment, and the cure that the error names gives all numbers back but the first node's.
func farNamespace(t *testing.T, b *registryBench) {
	if b.Reset == nil {
		t.Skip("the namespace of this registry cannot be deleted alone")
	}
	const years = 5 * 365 * 86_400_000
	latest := func(req worker.Request) worker.Request {
		req.Latest = req.Quiet + 2000
		return req
	}
	b.now += years
	wrong := b.start(t)
	far := claim(t, wrong, latest(b.request(address(1))))
	wrong.die(t)
	b.now -= years
	p := b.start(t)
	for i := range 3 {
		got, err := p.Claim(ctx(t), latest(b.request(address(2+i))))
		if !errors.Is(err, worker.ErrAhead) || !errors.Is(err, leaf.ErrClock) || !strings.Contains(err.Error(), p.Info().Reset) {
			t.Fatalf("claim beside a namespace of the future = %+v, %v; want ErrAhead with %q", got, err, p.Info().Reset)
		}
	}
	if all, err := p.List(ctx(t)); err != nil || len(all) != 1 || all[0].Number != far.Number {
		t.Fatalf("List = %+v, %v; want number %d and no other", all, err, far.Number)
	}
	p.die(t)
	b.Reset(t, p.Info().Reset)
	p = b.start(t)
	for i := range 3 {
		if got := claim(t, p, latest(b.request(address(2+i)))); got.Number == far.Number || got.Floor != b.now+quiet {
			t.Errorf("claim after the cure = %+v; want the floor %d and another number than %d", got, b.now+quiet, far.Number)
		}
	}
	heir := b.heir(p, far)
	switch got, err := p.Claim(ctx(t), heir); {
	case err == nil && got.Floor < far.Bound:
		t.Errorf("claim of the number that was used in the future = %+v; want a floor of at least T %d", got, far.Bound)
	case err != nil && !errors.Is(err, refusal(p)):
		t.Error(err)
	}
}

// wiped: a wiped registry looks like a new one.
func wiped(t *testing.T, b *registryBench) {
	if b.Wipe == nil {
		t.Skip("this registry cannot be wiped")
	}
	owner, r := b.founded(t)
	b.Wipe(t)
	wantLost(t, owner, r)
	if records, err := owner.List(ctx(t)); err != nil || len(records) > 0 {
		t.Errorf("List of a wiped registry = %+v, %v", records, err)
	}
	b.now += 1000
	for i, p := range []*process{owner, b.start(t), b.start(t)} {
		req := b.request(address(1 + i))
		first := b.now + quiet
		req.Quiet += int64(1000 * i)
		if got := claim(t, p, req); got.Floor != first {
			t.Errorf("claim %d in a wiped registry = %+v; want the floor %d", i, got, first)
		}
	}
	wantLost(t, b.start(t), r)
}

// wipedBeforeNamed: the registry is wiped while a claim is on its way to it, before it
// creates the namespace. The wait counts from when the new one was seen.
func wipedBeforeNamed(t *testing.T, b *registryBench) {
	if b.Wipe == nil {
		t.Skip("this registry cannot be wiped")
	}
	b.founded(t)
	const later = 60_000
	late := b.request(address(2))
	asked := 0
	late.QuietLater = func() int64 {
		if asked++; asked == 1 {
			b.Wipe(t)
			return late.Quiet
		}
		return late.Quiet + later
	}
	r := claim(t, b.start(t), late)
	if asked > 0 && r.Floor != late.Quiet+later {
		t.Errorf("claim = %+v; want the floor %d", r, late.Quiet+later)
	}
}

// wipedAndDeclared: the declaration says that the registry is new. A process that had a
// number before knows better, also when another one has its number now.
func wipedAndDeclared(t *testing.T, b *registryBench) {
	if b.Wipe == nil {
		t.Skip("this registry cannot be wiped")
	}
	owner, r := b.founded(t)
	b.Wipe(t)
	owner.die(t)
	b.now += 1000
	p := b.start(t)
	b.declare(t, p)
	if got := claim(t, p, b.request(address(2))); got.Floor > b.now {
		t.Errorf("claim in a namespace that was declared new = %+v; want a floor of at most %d", got, b.now)
	}
	survivor := b.request(address(1))
	survivor.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: b.now, Incarnation: r.Incarnation, Quiet: b.now + quiet}
	survivor.Quiet = 0
	if got := claim(t, b.start(t), survivor); got.Floor < b.now+quiet {
		t.Errorf("claim by a process of the namespace that was wiped = %+v; want a floor of at least %d", got, b.now+quiet)
	}
	wantLost(t, b.start(t), r)
}

func emptyRegistry(t *testing.T, b *registryBench) {
	p := b.start(t)
	for range 2 {
		if records, err := p.List(ctx(t)); err != nil || len(records) > 0 {
			t.Errorf("List = %+v, %v; want none", records, err)
		}
		if peers, err := p.Peers(ctx(t)); err != nil || len(peers) > 0 {
			t.Errorf("Peers = %+v, %v; want none", peers, err)
		}
		if err := p.Free(ctx(t), 1); !errors.Is(err, worker.ErrNotFound) {
			t.Errorf("Free: %v; want ErrNotFound", err)
		}
		b.declare(t, p)
	}
}

func lists(t *testing.T, b *registryBench) {
	p := b.start(t)
	b.declare(t, p)
	var want []worker.Record
	for i := range 12 {
		req := b.request(address(i))
		want = append(want, claim(t, b.start(t), req))
	}
	slices.SortFunc(want, func(a, b worker.Record) int { return cmp.Compare(a.Number, b.Number) })
	got, err := p.List(ctx(t))
	if err != nil || len(got) != len(want) {
		t.Fatalf("List = %+v, %v; want %d records", got, err, len(want))
	}
	for i := range got {
		if got[i].Version == "" {
			t.Errorf("record %+v has no version", got[i])
		}
		got[i].Version, got[i].Incarnation = want[i].Version, want[i].Incarnation
		if got[i] != want[i] {
			t.Errorf("List()[%d] = %+v; want %+v", i, got[i], want[i])
		}
	}
}

func peers(t *testing.T, b *registryBench) {
	processes := []*process{b.start(t), b.start(t), b.start(t)}
	b.declare(t, processes[0])
	var want []worker.Peer
	for i, p := range processes {
		r := claim(t, p, b.request(address(i)))
		peer := worker.Peer{Address: r.Address, Clock: "[2001:db8::1]:80" + string(rune('0'+i)), Nonce: r.Nonce, Number: r.Number}
		for range 2 {
			if err := p.Announce(ctx(t), peer); err != nil {
				t.Fatalf("Announce: %v", err)
			}
		}
		want = append(want, peer)
	}
	want[1].Clock = "10.9.9.9:1"
	if err := processes[1].Announce(ctx(t), want[1]); err != nil {
		t.Fatalf("Announce with another clock: %v", err)
	}
	announce := func() { // on a busy machine an announcement has ended since
		for i, peer := range want {
			if err := processes[len(processes)-len(want)+i].Announce(ctx(t), peer); err != nil {
				t.Fatalf("Announce again: %v", err)
			}
		}
	}
	list := func() {
		for _, p := range processes {
			got, err := p.Peers(ctx(t))
			slices.SortFunc(got, func(a, b worker.Peer) int { return cmp.Compare(a.Address, b.Address) })
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("Peers = %+v, %v; want %+v", got, err, want)
			}
		}
	}
	announce()
	list()
	for len(want) > 0 {
		announce()    // before the withdrawal, which must leave the others
		for range 2 { // the second one does nothing
			if err := processes[len(processes)-len(want)].Withdraw(ctx(t), want[0]); err != nil {
				t.Fatalf("Withdraw: %v", err)
			}
		}
		want = want[1:]
		list()
	}
}

func peerExpires(t *testing.T, b *registryBench) {
	if b.Lease == 0 {
		t.Skip("the lease of announcements is too long to wait for")
	}
	killed, lives := b.start(t), b.start(t)
	b.declare(t, killed)
	var announced []worker.Peer
	for i, p := range []*process{killed, lives} {
		r := claim(t, p, b.request(address(i)))
		announced = append(announced, worker.Peer{Address: r.Address, Clock: r.Address, Nonce: r.Nonce, Number: r.Number})
		if err := p.Announce(ctx(t), announced[i]); err != nil {
			t.Fatal(err)
		}
	}
	killed.die(t)
	until(t, "the killed process is announced", func(c context.Context) error {
		if err := lives.Announce(c, announced[1]); err != nil {
			return err
		}
		got, err := lives.Peers(c)
		if err != nil {
			return err
		}
		if !slices.Contains(got, announced[1]) {
			t.Fatalf("the live process is not announced: %+v", got)
		}
		if slices.ContainsFunc(got, func(p worker.Peer) bool { return p.Nonce == announced[0].Nonce }) {
			return errors.New("it is")
		}
		return nil
	})
	if records, err := lives.List(ctx(t)); err != nil || len(records) != 2 || records[0].Bound == 0 || records[1].Bound == 0 {
		t.Errorf("List after a lease has ended = %+v, %v; want both claims with their T (rule D)", records, err)
	}
}
