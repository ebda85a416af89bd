package drivertest

import (
	"errors"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/worker"
)

var previousCases = []registryCase{
	{"own file gives the inner bound", ownFile},
	{"another nonce gives nothing", othersFile},
	{"an inner bound above T counts as T", innerAboveT},
	{"a number that was taken meanwhile is gone", takenMeanwhile},
	{"an old copy of the own file gives nothing below T", oldCopy},
}

var renewCases = []registryCase{
	{"raises T and never lowers it", raises},
	{"records a raised floor, and a lowered one", movesFloor},
	{"repeated after a lost reply", lostRenewal},
	{"by a second writer of the same version", staleVersion},
	{"races with a claimer", renewRace},
}

var releaseCases = []registryCase{
	{"lowers T", releases},
	{"never raises T", releaseAboveT},
	{"and claimed again by its nonce", releasedAndClaimed},
	{"after a lost renewal", releaseAfterLost},
	{"by the operator", frees},
	{"of a number that never was", freesNothing},
}

func ownFile(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	owner.die(t)
	b.now += 2000
	req := b.heir(owner, r)
	req.Numbers = everything
	req.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: b.now + 500}
	got := claim(t, b.start(t), req)
	if got.Number != r.Number || got.Floor != b.now+500 || got.Bound < r.Bound {
		t.Errorf("claim with the own file = %+v; want number %d, floor %d, T at least %d", got, r.Number, b.now+500, r.Bound)
	}
}

func othersFile(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	owner.die(t)
	b.now += 2000
	next := b.start(t)
	for name, previous := range map[string]worker.Previous{
		"another nonce":  {Number: r.Number, Nonce: "somebody else's", Inner: b.now},
		"no nonce":       {Number: r.Number, Inner: b.now},
		"another number": {Number: r.Number + 1, Nonce: r.Nonce, Inner: b.now},
		"outside":        {Number: everything.Hi, Nonce: r.Nonce, Inner: b.now},
	} {
		req := b.heir(next, r)
		req.Previous = &previous
		got, err := next.Claim(ctx(t), req)
		switch {
		case errors.Is(err, refusal(next)):
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case next.Info().Kind == worker.Leased || got.Floor < r.Bound:
			t.Errorf("claim with a file that holds %s = %+v; want nothing below T %d", name, got, r.Bound)
		}
		if err == nil {
			return // a fixed identity has changed hands; the other files would now be judged by its T
		}
	}
}

func innerAboveT(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	owner.die(t)
	req := b.heir(owner, r)
	req.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: r.Bound + 12345}
	if got := claim(t, b.start(t), req); got.Number != r.Number || got.Floor != r.Bound {
		t.Errorf("claim = %+v; want number %d from T %d on", got, r.Number, r.Bound)
	}
}

// takenMeanwhile: the file says more exactly than T what was issued, but only about the time
// before another process took the number.
func takenMeanwhile(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	owner.die(t)
	second := b.start(t)
	next := b.inherit(t, second, r)
	second.die(t)
	req := b.heir(owner, r)
	req.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: r.Floor}
	third := b.start(t)
	got, err := third.Claim(ctx(t), req)
	switch {
	case err == nil && got.Floor < next.Bound:
		t.Errorf("claim with an outdated file = %+v, below T %d of the owner in between", got, next.Bound)
	case err != nil && !errors.Is(err, refusal(third)):
		t.Errorf("claim with an outdated file: %v", err)
	}
}

// oldCopy: a renewal records where its owner is, and a file that lies below was
// restored from an earlier time.
func oldCopy(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	first := r
	b.now += 20_000
	r.Floor = b.now
	r, err := owner.Renew(ctx(t), r, b.now+horizon)
	if err != nil {
		t.Fatal(err)
	}
	owner.die(t)
	req := b.heir(owner, r)
	req.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: first.Floor + 3000}
	next := b.start(t)
	got, err := next.Claim(ctx(t), req)
	switch {
	case err == nil && got.Floor < r.Bound:
		t.Errorf("claim with an old copy of the file = %+v; want a floor of at least T %d", got, r.Bound)
	case err != nil && !errors.Is(err, refusal(next)):
		t.Error(err)
	}
}

// movesFloor: an owner records a floor that rises as it issues, and at its stop the lower end
// of what it has issued.
func movesFloor(t *testing.T, b *registryBench) {
	p, r := b.founded(t)
	for _, floor := range []int64{b.now + 1234, b.now + 5678, b.now + 2345} {
		r.Floor = floor
		next, err := p.Renew(ctx(t), r, r.Bound+1000)
		if err != nil || next.Floor != floor || next.Bound != r.Bound+1000 {
			t.Fatalf("Renew with the floor %d = %+v, %v", floor, next, err)
		}
		if kept, _ := stored(t, p, r.Number); kept.Floor != floor {
			t.Errorf("the registry holds %+v; want the floor %d", kept, floor)
		}
		r = next
	}
	if _, err := p.Renew(ctx(t), r, 0); err != nil {
		t.Errorf("next Renew: %v", err)
	}
}

func raises(t *testing.T, b *registryBench) {
	p, r := b.founded(t)
	want := r.Bound
	for _, bound := range []int64{want + 3000, want + 3000, want, 0, -1, want + 6000} {
		want = max(want, bound)
		next, err := p.Renew(ctx(t), r, bound)
		if err != nil {
			t.Fatalf("Renew(%d): %v", bound, err)
		}
		same := next
		same.Bound, same.Version = r.Bound, r.Version
		if next.Bound != want || same != r {
			t.Errorf("Renew(%d) of %+v = %+v; want T %d and nothing else changed", bound, r, next, want)
		}
		if kept, _ := stored(t, p, r.Number); kept.Bound != want || kept.Floor != r.Floor || kept.Nonce != r.Nonce || kept.Address != r.Address {
			t.Errorf("the registry holds %+v after Renew(%d) of %+v", kept, bound, r)
		}
		r = next
	}
}

// lostRenewal: the registry has done as it was told, and the owner does not know.
func lostRenewal(t *testing.T, b *registryBench) {
	p, own := b.founded(t)
	for _, lost := range []int64{3000, 6000} {
		if _, err := p.Renew(ctx(t), own, own.Bound+lost); err != nil {
			t.Fatal(err)
		}
	}
	got, err := p.Renew(ctx(t), own, own.Bound+4000)
	if err != nil || got.Bound != own.Bound+6000 {
		t.Fatalf("Renew after two lost replies = %+v, %v; want T %d, which the registry has promised", got, err, own.Bound+6000)
	}
	if _, err := p.Renew(ctx(t), got, got.Bound+1000); err != nil {
		t.Errorf("next Renew: %v", err)
	}
}

func staleVersion(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	if err := owner.Free(ctx(t), r.Number); err != nil {
		t.Fatal(err)
	}
	second := b.start(t)
	if owner.Info().Kind == worker.Fixed {
		owner.die(t)
		owner = b.start(t)
	}
	next := claim(t, second, b.heir(second, r))
	wantLost(t, owner, r)
	if kept, _ := stored(t, second, r.Number); kept.Nonce != next.Nonce || kept.Bound != next.Bound {
		t.Errorf("the registry holds %+v after the renewals of a lost claim; want %+v", kept, next)
	}
	if _, err := second.Renew(ctx(t), next, next.Bound+1000); err != nil {
		t.Errorf("Renew by the second owner: %v", err)
	}
}

// renewRace: an owner renews at the very moment at which its number is taken. If
// both succeed, the renewal was first, and the new owner knows of it.
func renewRace(t *testing.T, b *registryBench) {
	p, r := b.founded(t)
	for round := range 20 {
		freed := p.Info().Kind == worker.Fixed || round%2 == 0
		if !freed {
			b.now = r.Bound + margin
		}
		owner, next := b.start(t), b.start(t)
		req := b.heir(next, r)
		shared := ctx(t)
		begin := make(chan struct{})
		var group sync.WaitGroup
		var renewed, claimed worker.Record
		var renewal, taking error
		group.Go(func() {
			<-begin
			renewed, renewal = owner.Renew(shared, r, req.Now+2*horizon)
		})
		group.Go(func() {
			<-begin
			if freed {
				if taking = next.Free(shared, r.Number); taking != nil {
					return
				}
			}
			claimed, taking = next.Claim(shared, req)
		})
		if p.Info().Kind == worker.Fixed {
			p.die(t) // a live process keeps its address
		}
		close(begin)
		group.Wait()
		switch {
		case renewal != nil && !errors.Is(renewal, worker.ErrLost):
			t.Fatalf("Renew: %v", renewal)
		case taking != nil && (freed || !errors.Is(taking, worker.ErrFull)):
			t.Fatalf("Claim: %v", taking)
		case renewal != nil && taking != nil:
			t.Fatalf("the renewal was refused with %v, although no other process came: %v", renewal, taking)
		case renewal == nil && taking == nil && claimed.Floor < renewed.Bound:
			t.Fatalf("two owners: one may issue below %d, the next starts at %d", renewed.Bound, claimed.Floor)
		case taking == nil:
			if claimed.Floor < r.Bound {
				t.Fatalf("the new owner starts at %d, below T %d", claimed.Floor, r.Bound)
			}
			p, r = next, claimed
			wantLostNonce(t, owner, r, renewed)
		default:
			r = renewed
		}
	}
}

// wantLostNonce expects that the loser of a race, if it ever had a claim, has none.
func wantLostNonce(t *testing.T, loser *process, now, had worker.Record) {
	t.Helper()
	if had.Version == "" {
		return
	}
	if got, err := loser.Renew(ctx(t), had, now.Bound+horizon); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew by the loser = %+v, %v; want ErrLost", got, err)
	}
}

func releases(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	if r, err := owner.Renew(ctx(t), r, r.Bound+1000); err != nil {
		t.Fatal(err)
	} else if err := owner.Release(ctx(t), r, b.now+17); err != nil {
		t.Fatal(err)
	}
	if kept, ok := stored(t, owner, r.Number); !ok || kept.Bound != b.now+17 || !kept.Released {
		t.Errorf("after the release the registry holds %+v, %v; want T %d", kept, ok, b.now+17)
	}
	if got, err := owner.Renew(ctx(t), r, r.Bound+1000); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew after the release = %+v, %v; want ErrLost", got, err)
	}
	b.now += 5
	next := b.start(t)
	first := b.now + 12
	if got := claim(t, next, b.heir(next, r)); got.Number != r.Number || got.Floor != first {
		t.Errorf("claim after the release = %+v; want number %d from %d on, which is where the first owner stopped", got, r.Number, first)
	}
}

func releaseAboveT(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	if err := owner.Release(ctx(t), r, r.Bound+1000); err != nil {
		t.Fatal(err)
	}
	if kept, _ := stored(t, owner, r.Number); kept.Bound != r.Bound {
		t.Errorf("T is %d after a release above it, and was %d", kept.Bound, r.Bound)
	}
}

// releasedAndClaimed: a released number is claimed by no process any more.
func releasedAndClaimed(t *testing.T, b *registryBench) {
	p := b.start(t)
	b.declare(t, p)
	req := b.request(address(1))
	r := claim(t, p, req)
	if err := p.Release(ctx(t), r, b.now+9); err != nil {
		t.Fatal(err)
	}
	again := claim(t, p, req)
	if again.Number == r.Number && again.Floor < b.now+9 {
		t.Errorf("claim after the release = %+v; want a floor of at least %d", again, b.now+9)
	}
	if _, err := p.Renew(ctx(t), again, again.Bound+1000); err != nil {
		t.Errorf("Renew: %v", err)
	}
}

func releaseAfterLost(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	if _, err := owner.Renew(ctx(t), r, r.Bound+3000); err != nil {
		t.Fatal(err)
	}
	if err := owner.Release(ctx(t), r, b.now+9); err != nil {
		t.Fatalf("Release after a renewal whose reply was lost: %v", err)
	}
	next := b.start(t)
	if got := claim(t, next, b.heir(next, r)); got.Number != r.Number || got.Floor != b.now+9 {
		t.Errorf("claim after the release = %+v; want number %d from %d on", got, r.Number, b.now+9)
	}
}

func frees(t *testing.T, b *registryBench) {
	owner, r := b.founded(t)
	operator := b.start(t)
	for range 2 {
		if err := operator.Free(ctx(t), r.Number); err != nil {
			t.Fatal(err)
		}
	}
	if kept, ok := stored(t, operator, r.Number); !ok || kept.Bound != r.Bound || kept.Nonce != "" || !kept.Released {
		t.Errorf("after Free the registry holds %+v; want T %d and no nonce", kept, r.Bound)
	}
	wantLost(t, owner, r)
	owner.die(t)
	next := b.start(t)
	if got := claim(t, next, b.heir(next, r)); got.Number != r.Number || got.Floor < r.Bound || got.Bound < got.Floor {
		t.Errorf("claim after Free = %+v; want number %d from %d on", got, r.Number, r.Bound)
	}
}

func freesNothing(t *testing.T, b *registryBench) {
	p, r := b.founded(t)
	for _, number := range []int64{r.Number + 1, everything.Hi, -1} {
		if err := p.Free(ctx(t), number); !errors.Is(err, worker.ErrNotFound) {
			t.Errorf("Free(%d): %v; want ErrNotFound", number, err)
		}
	}
}
