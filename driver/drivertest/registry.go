package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// RegistryTarget is a registry of worker IDs in which nothing was ever stored, and
// what the suite must know of it. The hooks change stored data without the registry's
// code, as an operator or an accident does. A hook that is nil does not exist for this
// registry; the suite skips the cases that need it, and says so.
type RegistryTarget struct {
	// Open returns a handle on the common registry, as one more process has it. The
	// suite closes it, also in the middle of a case, which then means that the process
	// was killed. Where processes can only share one handle, Close does nothing.
	Open func(t *testing.T) worker.Registry

	// DeleteClaim deletes the claim of a number, but not its T.
	DeleteClaim func(t *testing.T, number int64)

	// Overwrite puts another nonce into the claim of a number, and leaves its T.
	Overwrite func(t *testing.T, number int64, nonce string)

	// Garble makes what is stored of a number unreadable, its T included.
	Garble func(t *testing.T, number int64)
	// Forget deletes all that is stored of all numbers, claims and T, but not the
	// namespace.
	Forget func(t *testing.T)

	// Reset deletes the namespace, but nothing of the numbers. It does what command says,
	// which is the registry's Info().Reset.
	Reset func(t *testing.T, command string)

	// Wipe deletes everything, the namespace too.
	Wipe func(t *testing.T)

	// Partition swallows all that passes between the handles and the registry, those
	// opened later included, while connections stay open, until heal is called. Pause
	// stops the registry itself (SIGSTOP): what reached it meanwhile, it does later.
	Partition func(t *testing.T) (heal func())
	Pause     func(t *testing.T) (resume func())

	// Lease is how long an announcement lasts, if that is short enough for a test to
	// wait for its end; else 0.
	Lease time.Duration

	// Fingerprint is that of the namespace; "": any text will do.
	Fingerprint string
}

// NewRegistry returns an empty registry. It is called once per case.
type NewRegistry func(t *testing.T) RegistryTarget

// RunRegistry holds a registry to the contract of worker.Registry, and to what spec
// section 6 says of claims (guarantees 4 to 6 and 8, rules C to F).
//
// Time is simulated: the suite says in its requests what the clock shows. What a
// process may have issued is everything below its T, whether the suite looked or
// not, so each case asks whether the next owner starts at or above that.
//
// The kinds differ in the next owner. A number of a leased registry goes to any process.
// A number of a fixed registry belongs to an address, and goes to its next process.
func RunRegistry(t *testing.T, newRegistry NewRegistry) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []registryCase
	}{
		{"Namespace", namespaceCases},
		{"Claim", claimCases},
		{"Previous", previousCases},
		{"Renew", renewCases},
		{"Release", releaseCases},
		{"Loss", lossCases},
		{"Read", registryReadCases},
		{"Outage", outageCases},
		{"Model", modelCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			runRegistryCases(t, group.cases, newRegistry)
		})
	}
}

// RunRegistryOutages is the part of RunRegistry that needs Partition and Pause, for a
// server of its own: one that other cases share must not be stopped.
func RunRegistryOutages(t *testing.T, newRegistry NewRegistry) {
	t.Helper()
	runRegistryCases(t, outageCases, newRegistry)
}

// RunRegistryLosses is the part of RunRegistry in which records are taken away from
// under their owners, for a registry that can lose them in more than one way.
func RunRegistryLosses(t *testing.T, newRegistry NewRegistry) {
	t.Helper()
	runRegistryCases(t, lossCases, newRegistry)
}

func runRegistryCases(t *testing.T, cases []registryCase, newRegistry NewRegistry) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			target := newRegistry(t)
			if target.Fingerprint == "" {
				target.Fingerprint = "layout of the suite"
			}
			c.run(t, &registryBench{RegistryTarget: target, now: simulatedStart})
		})
	}
}

type registryCase struct {
	name string
	run  func(t *testing.T, b *registryBench)
}

// What the suite's processes are configured with, in ms.
const (
	simulatedStart int64 = 1_763_000_000_000
	horizon        int64 = 60_000 // T is so far ahead of the clock
	margin         int64 = 5_000
	quiet          int64 = 80_000
)

// everything is the range of the original.
var everything = leaf.Range{Lo: 0, Hi: 1024}

// registryBench is a target with a clock.
type registryBench struct {
	RegistryTarget

	now int64 // what the wall clocks of all processes show
}

// process is one process of a case. It ends with the case, or by die.
type process struct {
	worker.Registry

	dead bool
}

// start starts a process.
func (b *registryBench) start(t *testing.T) *process {
	t.Helper()
	p := &process{Registry: b.Open(t)}
	t.Cleanup(func() { p.die(t) })
	return p
}

// needsPool skips a registry that never gives a number to another owner.
func (b *registryBench) needsPool(t *testing.T) {
	t.Helper()
	if b.Forget == nil {
		t.Skip("this registry never gives a number twice")
	}
}

// records starts a process and returns the Records below its pool.
func (b *registryBench) records(t *testing.T) worker.Records {
	t.Helper()
	b.needsPool(t)
	p := b.start(t)
	records, ok := p.Registry.(worker.Records)
	if !ok {
		t.Fatalf("%T has no worker.Records", p.Registry)
	}
	return records
}

// die is the end of a process that could not clean up.
func (p *process) die(t *testing.T) {
	t.Helper()
	if p.dead {
		return
	}
	p.dead = true
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func (b *registryBench) namespace() worker.Namespace {
	return worker.Namespace{Name: "suite", Fingerprint: b.Fingerprint}
}

// request is that of a new process at address.
func (b *registryBench) request(address string) worker.Request {
	return worker.Request{
		Namespace: b.namespace(), Address: address, Nonce: rand.Text(), Numbers: everything,
		Now: b.now, Bound: b.now + horizon, Margin: margin, Quiet: b.now + quiet,
	}
}

// address returns one of 62,500 addresses.
func address(i int) string { return fmt.Sprintf("10.1.%d.%d:8080", i/250, 1+i%250) }

// declare makes the namespace by Init, so that the first claimer need not wait.
func (b *registryBench) declare(t *testing.T, p *process) {
	t.Helper()
	if err := p.Init(ctx(t), b.namespace()); err != nil {
		t.Fatalf("Init: %v", err)
	}
}

// claim expects to get a number.
func claim(t *testing.T, p *process, req worker.Request) worker.Record {
	t.Helper()
	r, err := p.Claim(ctx(t), req)
	if err != nil {
		t.Fatalf("Claim by %s at %d: %v", req.Address, req.Now, err)
	}
	checkClaim(t, req, r)
	return r
}

// checkClaim checks what holds for every claim of every process.
func checkClaim(t *testing.T, req worker.Request, r worker.Record) {
	t.Helper()
	switch {
	case r.Number < req.Numbers.Lo || r.Number >= req.Numbers.Hi:
		t.Errorf("number %d lies outside %v", r.Number, req.Numbers)
	case r.Nonce != req.Nonce || r.Address != req.Address || r.Released || r.Version == "":
		t.Errorf("record %+v is not that of the request %+v", r, req)
	case r.Bound < r.Floor:
		t.Errorf("T %d lies below the floor %d", r.Bound, r.Floor)
	case req.Now < r.Floor && r.Bound > r.Floor && r.Bound == req.Bound:
		t.Errorf("the clock shows %d, below the floor %d, and T was raised to %d (rule F)", req.Now, r.Floor, r.Bound)
	}
}

// founded starts a process and gives it a number in a declared namespace.
func (b *registryBench) founded(t *testing.T) (*process, worker.Record) {
	t.Helper()
	p := b.start(t)
	b.declare(t, p)
	r := claim(t, p, b.request(address(1)))
	if r.Floor > b.now || r.Bound != b.now+horizon {
		t.Fatalf("first claim of a declared namespace = %+v; want a floor of at most %d and T %d", r, b.now, b.now+horizon)
	}
	return p, r
}

// heir is the request of a process that can only get the number of r: on a leased registry a
// process without a number before, on a fixed one the next process of the address.
func (b *registryBench) heir(p *process, r worker.Record) worker.Request {
	req := b.request(address(2))
	if p.Info().Kind == worker.Fixed {
		req.Address = r.Address
		return req
	}
	req.Numbers = leaf.Range{Lo: r.Number, Hi: r.Number + 1}
	return req
}

// refusal is what a claimer sees when the only number it can have is held.
func refusal(p *process) error {
	if p.Info().Kind == worker.Fixed {
		return worker.ErrTaken
	}
	return worker.ErrFull
}

// inherit expects the heir of r to get its number, at the latest when T and the
// margin have passed, and returns the record.
func (b *registryBench) inherit(t *testing.T, p *process, r worker.Record) worker.Record {
	t.Helper()
	b.now = max(b.now, r.Bound+margin)
	next := claim(t, p, b.heir(p, r))
	if next.Number != r.Number {
		t.Fatalf("the heir of number %d got %d", r.Number, next.Number)
	}
	return next
}

// wantLost expects the owner of r to find its claim lost, however often it asks.
func wantLost(t *testing.T, p *process, r worker.Record) {
	t.Helper()
	for range 2 {
		if got, err := p.Renew(ctx(t), r, r.Bound+1000); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Renew of a lost claim = %+v, %v; want ErrLost", got, err)
		}
	}
	if err := p.Release(ctx(t), r, r.Floor); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Release of a lost claim: %v; want ErrLost", err)
	}
}

// stored returns what the registry holds of a number.
func stored(t *testing.T, p *process, number int64) (worker.Record, bool) {
	t.Helper()
	records, err := p.List(ctx(t))
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, r := range records {
		if r.Number == number {
			return r, true
		}
	}
	return worker.Record{}, false
}

// until repeats a call that may fail for a while, such as right after an outage.
func until(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	all := ctx(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(all, 2*time.Second)
		err := call(one)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-all.Done():
			t.Fatalf("%s: still %v after %v", what, err, longest)
		case <-tick.C:
		}
	}
}
