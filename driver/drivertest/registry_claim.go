package drivertest

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/worker"
)

var namespaceCases = []registryCase{
	{"first claimer waits", firstWaits},
	{"a declared namespace need not wait", declared},
	{"another name or fingerprint is refused", foreign},
	{"read while it is amended", amendedMeanwhile},
	{"amended from what is stored, and from nothing else", amendedLate},
}

var claimCases = []registryCase{
	{"many processes at once on an empty registry", crowd},
	{"many processes at once in a declared namespace", declaredCrowd},
	{"many processes at once with one address", sameAddress},
	{"repeated with its nonce", repeatedClaim},
	{"a full range is named", fullRange},
	{"a killed owner keeps its number until T and the margin", killedOwner},
	{"a free number is preferred to one that must wait", prefersFree},
}

func firstWaits(t *testing.T, b *registryBench) {
	p := b.start(t)
	req := b.request(address(1))
	r := claim(t, p, req)
	if r.Floor != req.Quiet || r.Bound != req.Quiet {
		t.Errorf("first claim of a namespace that was not declared = %+v; want floor and T %d (rules D and F)", r, req.Quiet)
	}
	b.now += 1000
	later := b.request(address(2))
	if r := claim(t, b.start(t), later); r.Floor != req.Quiet {
		t.Errorf("second claim = %+v; want the floor %d of the namespace", r, req.Quiet)
	}
	if err := p.Init(ctx(t), b.namespace()); err != nil {
		t.Errorf("Init of an existing namespace: %v", err)
	}
	if r := claim(t, b.start(t), b.request(address(3))); r.Floor != req.Quiet {
		t.Errorf("claim after Init of an existing namespace = %+v; want the floor %d: Init changes nothing", r, req.Quiet)
	}
}

func declared(t *testing.T, b *registryBench) {
	p, _ := b.founded(t)
	b.declare(t, p) // does nothing
	for i := 2; i < 5; i++ {
		req := b.request(address(i))
		if r := claim(t, b.start(t), req); r.Floor > req.Now || r.Bound != req.Bound {
			t.Errorf("claim %d = %+v; want a floor of at most %d and T %d", i, r, req.Now, req.Bound)
		}
	}
}

func foreign(t *testing.T, b *registryBench) {
	p, own := b.founded(t)
	for _, ns := range []worker.Namespace{
		{Name: "other", Fingerprint: b.Fingerprint},
		{Name: "suite", Fingerprint: "other layout"},
		{Name: "Suite", Fingerprint: b.Fingerprint},
		{Name: "suite", Fingerprint: b.Fingerprint + " "},
	} {
		other := b.start(t)
		if err := other.Init(ctx(t), ns); !errors.Is(err, worker.ErrForeign) {
			t.Errorf("Init(%q): %v; want ErrForeign", ns, err)
		}
		req := b.request(address(2))
		req.Namespace = ns
		r, err := other.Claim(ctx(t), req)
		if !errors.Is(err, worker.ErrForeign) {
			t.Errorf("Claim in %q = %+v, %v; want ErrForeign", ns, r, err)
			continue
		}
		have, want := ns.Name, "suite"
		if ns.Name == want {
			have, want = ns.Fingerprint, b.Fingerprint
		}
		if !strings.Contains(err.Error(), have) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name both %q and %q", err, have, want)
		}
	}
	if _, err := p.Renew(ctx(t), own, own.Bound+1); err != nil {
		t.Errorf("Renew after foreign attempts: %v", err)
	}
}

// amendedMeanwhile: a namespace is read as one Amend left it. The IssueFrom of before with
// the Given of after would hide that the numbers must wait longer (rule U).
func amendedMeanwhile(t *testing.T, b *registryBench) {
	b.declare(t, b.start(t))
	writer, reader := b.records(t), b.records(t)
	begin, err := reader.Namespace(ctx(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	const last = 50
	var amending sync.WaitGroup
	amending.Go(func() {
		for old := *begin; old.Given < begin.Given+last; {
			next := old
			next.IssueFrom++
			next.Given++
			if err := writer.Amend(ctx(t), old, next); err != nil {
				t.Errorf("Amend: %v", err)
				return
			}
			old = next
		}
	})
	defer amending.Wait()
	for given := begin.Given; given < begin.Given+last && !t.Failed(); {
		ns, err := reader.Namespace(ctx(t), nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case ns.IssueFrom-ns.Given != begin.IssueFrom-begin.Given || ns.Given < given:
			t.Fatalf("Namespace = %+v after Given %d; want one that begins at Given plus %d", ns, given, begin.IssueFrom-begin.Given)
		}
		given = ns.Given
	}
}

// amendedLate: an Amend from what was stored before another process changed it changes nothing. Else it would take
// back the moment from which numbers may be used, or the count of a number that was given meanwhile (rule U).
func amendedLate(t *testing.T, b *registryBench) {
	records := b.records(t)
	if ns, err := records.Namespace(ctx(t), nil); ns != nil || err != nil {
		t.Fatalf("Namespace of an empty registry = %+v, %v; want none, and none made", ns, err)
	}
	if old := (worker.StoredNamespace{Namespace: b.namespace()}); !errors.Is(records.Amend(ctx(t), old, old), worker.ErrLost) {
		t.Error("Amend of no namespace is not ErrLost")
	}
	b.declare(t, b.start(t))
	for name, change := range map[string]func(old worker.StoredNamespace) error{
		"another Amend": func(old worker.StoredNamespace) error {
			next := old
			next.IssueFrom += 1000
			return records.Amend(ctx(t), old, next)
		},
		"a first claim of a number": func(old worker.StoredNamespace) error {
			_, err := records.Put(ctx(t), worker.Record{Number: 7, Address: address(1), Nonce: "first", Bound: b.now, Incarnation: old.Incarnation})
			return err
		},
	} {
		old, err := records.Namespace(ctx(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(*old); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := records.Namespace(ctx(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		next := *old
		next.IssueFrom += 5
		next.Given += 5
		if err := records.Amend(ctx(t), *old, next); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Amend after %s: %v; want ErrLost", name, err)
		}
		if got, err := records.Namespace(ctx(t), nil); err != nil || *got != *want || *got == *old {
			t.Errorf("after %s and a late Amend the namespace is %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// crowd: of those that find no namespace one creates it, and all wait as it says.
func crowd(t *testing.T, b *registryBench) { checkCrowd(t, b, false) }

func declaredCrowd(t *testing.T, b *registryBench) { checkCrowd(t, b, true) }

// crowdSize is how many processes claim at once. Each looks at the claims of all others, so the time of a
// case grows with its square.
func crowdSize() int {
	if long.Asked() {
		return 64
	}
	return 16
}

func checkCrowd(t *testing.T, b *registryBench, declared bool) {
	n := crowdSize()
	processes := make([]*process, n)
	requests := make([]worker.Request, n)
	for i := range n {
		processes[i] = b.start(t)
		requests[i] = b.request(address(i))
		requests[i].Quiet += int64(i)
		requests[i].Numbers = leaf.Range{Lo: 0, Hi: 100}
	}
	if declared {
		b.declare(t, processes[0])
	}
	records, errs := claimAtOnce(t, processes, requests)
	owner := map[int64]string{}
	for i, r := range records {
		if errs[i] != nil {
			t.Errorf("claim %d: %v", i, errs[i])
			continue
		}
		checkClaim(t, requests[i], r)
		if other, taken := owner[r.Number]; taken {
			t.Errorf("number %d went to %s and to %s", r.Number, other, r.Address)
		}
		owner[r.Number] = r.Address
		switch {
		case declared && r.Floor > b.now:
			t.Errorf("floor %d in a declared namespace at %d", r.Floor, b.now)
		case !declared && (r.Floor != records[0].Floor || r.Floor < b.now+quiet || r.Floor >= b.now+quiet+int64(n)):
			t.Errorf("floors %d and %d; want one, that of the process that created the namespace", r.Floor, records[0].Floor)
		}
		if kept, _ := stored(t, processes[0], r.Number); kept.Nonce != r.Nonce || kept.Bound != r.Bound {
			t.Errorf("the registry holds %+v, the process %+v", kept, r)
		}
	}
}

// claimAtOnce lets all processes claim at the same moment.
func claimAtOnce(t *testing.T, processes []*process, requests []worker.Request) (records []worker.Record, errs []error) {
	t.Helper()
	records, errs = make([]worker.Record, len(processes)), make([]error, len(processes))
	shared := ctx(t)
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			<-begin
			records[i], errs[i] = processes[i].Claim(shared, requests[i])
		})
	}
	close(begin)
	group.Wait()
	return records, errs
}

func sameAddress(t *testing.T, b *registryBench) {
	n := crowdSize()
	processes := make([]*process, n)
	requests := make([]worker.Request, n)
	for i := range n {
		processes[i] = b.start(t)
		requests[i] = b.request(address(1))
	}
	b.declare(t, processes[0])
	records, errs := claimAtOnce(t, processes, requests)
	fixed := processes[0].Info().Kind == worker.Fixed
	numbers := map[int64]bool{}
	won := 0
	for i, r := range records {
		switch {
		case errs[i] == nil && numbers[r.Number]:
			t.Errorf("number %d went to two processes", r.Number)
		case errs[i] == nil:
			checkClaim(t, requests[i], r)
			numbers[r.Number] = true
			won++
			if _, err := processes[i].Renew(ctx(t), r, r.Bound+1000); err != nil {
				t.Errorf("Renew by a winner: %v", err)
			}
		case !fixed || !errors.Is(errs[i], worker.ErrTaken):
			t.Errorf("claim %d: %v", i, errs[i])
		}
	}
	if fixed && won != 1 {
		t.Errorf("%d processes hold the identity of one address", won)
	}
}

func repeatedClaim(t *testing.T, b *registryBench) {
	p := b.start(t)
	req := b.request(address(1))
	first := claim(t, p, req)
	b.now += 10_000
	again := req
	again.Now, again.Bound, again.Quiet = b.now, b.now+horizon, b.now+quiet
	for _, other := range []*process{p, b.start(t)} {
		r, err := other.Claim(ctx(t), again)
		if err != nil || r.Number != first.Number || r.Floor != first.Floor || r.Bound < first.Bound {
			t.Errorf("Claim with the same nonce = %+v, %v; want number %d, floor %d", r, err, first.Number, first.Floor)
		}
	}
	if _, err := p.Renew(ctx(t), first, first.Bound+1000); err != nil {
		t.Errorf("Renew after repeated claims: %v", err)
	}
	if records, err := p.List(ctx(t)); err != nil || len(records) != 1 {
		t.Errorf("List after repeated claims = %+v, %v; want one record", records, err)
	}
}

func fullRange(t *testing.T, b *registryBench) {
	p := b.start(t)
	b.declare(t, p)
	numbers := leaf.Range{Lo: 5, Hi: 8}
	switch {
	case long.Asked():
		numbers = everything
	case p.Info().Kind == worker.Fixed:
		numbers = leaf.Range{Lo: 0, Hi: 3} // the registry may count its numbers from the first on
	}
	for i := range numbers.Len() + 1 {
		claimer := b.start(t)
		req := b.request(address(int(i)))
		req.Numbers = numbers
		r, err := claimer.Claim(ctx(t), req)
		claimer.die(t)
		if err == nil && i < numbers.Len() {
			checkClaim(t, req, r)
			continue
		}
		if !errors.Is(err, worker.ErrFull) {
			t.Fatalf("Claim %d in %v = %+v, %v; want ErrFull", i, numbers, r, err)
		}
		if skipped := numbers.Len() - i; skipped > 1 || skipped == 1 && p.Info().Kind == worker.Leased {
			t.Errorf("%d numbers of %v were left when the registry said %q", skipped, numbers, err)
		}
		for _, end := range []int64{numbers.Lo, numbers.Hi - 1} {
			if !strings.Contains(err.Error(), strconv.FormatInt(end, 10)) {
				t.Errorf("%q does not name %d", err, end)
			}
		}
		return
	}
}

func killedOwner(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	r, err := owner.Renew(ctx(t), r, r.Bound+7000)
	if err != nil {
		t.Fatal(err)
	}
	next := b.start(t)
	if next.Info().Kind == worker.Fixed {
		b.now++
		if got, err := next.Claim(ctx(t), b.heir(next, r)); !errors.Is(err, worker.ErrTaken) {
			t.Errorf("Claim of a live twin = %+v, %v; want ErrTaken", got, err)
		}
	}
	owner.die(t)
	for _, now := range []int64{b.now, r.Bound - 1, r.Bound, r.Bound + margin - 1} {
		b.now = now
		got, err := next.Claim(ctx(t), b.heir(next, r))
		switch {
		case err == nil && next.Info().Kind == worker.Fixed: // its session proved it dead
			if got.Floor < r.Bound {
				t.Errorf("at %d the heir starts at %d, below T %d", now, got.Floor, r.Bound)
			}
			return
		case !errors.Is(err, refusal(next)):
			t.Fatalf("Claim %d ms before T and the margin = %+v, %v; want %v", r.Bound+margin-now, got, err, refusal(next))
		}
	}
	if got := b.inherit(t, next, r); got.Floor < r.Bound {
		t.Errorf("the heir starts at %d, below T %d", got.Floor, r.Bound)
	}
}

func prefersFree(t *testing.T, b *registryBench) {
	p, r := b.founded(t)
	if p.Info().Kind == worker.Fixed {
		t.Skip("on a fixed registry the address decides the number")
	}
	if err := p.Free(ctx(t), r.Number); err != nil { // it has a T in the future now
		t.Fatal(err)
	}
	for i := range 8 {
		req := b.request(address(2 + i))
		req.Numbers = leaf.Range{Lo: r.Number, Hi: r.Number + 9}
		if got := claim(t, b.start(t), req); got.Number == r.Number || got.Floor > b.now {
			t.Fatalf("claim %d = %+v, although %d numbers were never used", i, got, 8-i)
		}
	}
	req := b.request(address(20))
	req.Numbers = leaf.Range{Lo: r.Number, Hi: r.Number + 9}
	if got := claim(t, b.start(t), req); got.Number != r.Number || got.Floor != r.Bound {
		t.Errorf("last claim = %+v; want number %d from %d on", got, r.Number, r.Bound)
	}
}
