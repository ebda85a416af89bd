package worker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// storm is a world of the randomized test: a registry, machines with clocks and disks,
// and a record of everything that was issued.
type storm struct {
	t       *testing.T
	seed    uint64
	records *records
	kind    worker.Kind

	mu      sync.Mutex
	highest map[int64]int64  // by number: the highest T that the registry ever held
	spans   map[span][]int64 // by generator: first and last unit
	history []string         // what was done to whom, for a failure
}

// span is one generator: a session of one process on one number.
type span struct {
	process *worker.Holder
	session int64
	number  int64
	key     string // the text of a further layout, "" for the first
}

// furtherLayouts has IDs of other lengths of time with the same number.
var furtherLayouts = []string{"seconds", "js53"}

func (s *storm) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (s *storm) fail(format string, args ...any) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("seed %d: %s\n%s", s.seed, fmt.Sprintf(format, args...), strings.Join(s.history, "\n"))
}

// put is a write that reached the registry.
func (s *storm) put(ctx context.Context, r worker.Record) (string, error) {
	version, err := s.records.Put(ctx, r)
	if err == nil {
		s.mu.Lock()
		s.highest[r.Number] = max(s.highest[r.Number], r.Bound)
		s.mu.Unlock()
	}
	return version, err
}

// took checks IDs: below a T, above all before, and in no other generator's time.
func (s *storm) took(m *machine, process *worker.Holder, session int64, ids []leaf.Range, key string) {
	layout, err := snowflake.ParseLayout(cmp.Or(key, "leaf"))
	if err != nil {
		s.fail("%v", err)
	}
	for _, r := range ids {
		for _, id := range []int64{r.Lo, r.Hi - 1} {
			p, err := layout.Decode(id)
			if err != nil {
				s.fail("%s: %v", m.address, err)
			}
			s.check(m, layout, span{process, session, p.Worker, key}, id, p.Unit)
		}
	}
}

func (s *storm) check(m *machine, layout snowflake.Layout, by span, id, unit int64) {
	s.mu.Lock()
	own, highest := s.spans[by], s.highest[by.number]
	if own == nil {
		own = []int64{unit, unit, id}
		s.spans[by] = own
	}
	last := own[2]
	own[1], own[2] = max(own[1], unit), id
	var clash span
	for other, units := range s.spans {
		if other != by && other.number == by.number && other.key == by.key && own[0] <= units[1] && units[0] <= own[1] {
			clash = other
		}
	}
	s.mu.Unlock()
	at := time.UnixMilli(layout.Millis(unit)).UTC()
	switch {
	case clash.process != nil:
		s.fail("%s issued with number %d at %v, session %d, within the time of another generator (%v to %v, session %d, the same process: %v)", m.address, by.number, at, by.session,
			s.spans[clash][0], s.spans[clash][1], clash.session, clash.process == by.process)
	case id < last:
		s.fail("%s issued %d after %d", m.address, id, last)
	case at.UnixMilli() >= highest:
		s.fail("%s issued with number %d at %v, the registry never held more than %v", m.address, by.number, at, time.UnixMilli(highest).UTC())
	}
}

// machine is a node that survives its processes.
type machine struct {
	s       *storm
	address string
	rng     *rand.Rand
	cfg     worker.Config
	files   map[string][]byte
	old     []byte // an earlier content of the file
	alarms  *alarms

	mu     sync.Mutex
	offset time.Duration // of its clock
	stop   time.Time     // the process is suspended until then
	faults faults
	proc   *process
	ended  sync.WaitGroup // of processes
}

// faults are what befalls calls of a machine at present.
type faults struct {
	hang, refuse   bool    // the registry cannot be reached: no answer, or an error
	deaf, late     float64 // chance that a write loses its answer, or arrives later
	disk, diskLate error   // the disk refuses, before or after it wrote
	slow           time.Duration
}

// process is one life on a machine: its registry handle, disk, clock and runtime.
type process struct {
	leaf.Runtime

	*machine
	holder *worker.Holder
	rng    *rand.Rand
	begun  time.Time
	nonce  int
	mu     sync.Mutex
	dead   bool
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) chance(of float64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.Float64() < of
}

func (p *process) upTo(d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.rng.Int64N(int64(d)))
}

// gate holds the process up while it is suspended, and returns what befalls it.
func (p *process) gate() faults {
	for {
		p.machine.mu.Lock()
		f, left := p.faults, time.Until(p.stop)
		p.machine.mu.Unlock()
		if left <= 0 || p.isDead() {
			return f
		}
		time.Sleep(min(left, time.Second))
	}
}

// Now is the machine's clock.
func (p *process) Now() time.Time {
	p.gate()
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	return time.Now().Round(0).AddDate(24, 0, 0).Add(p.offset)
}

func (p *process) elapsed() time.Duration {
	p.gate()
	return time.Since(p.begun)
}

// Jitter follows the seed.
func (p *process) Jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d/2 + p.upTo(d/2)
}

var errStorm = errors.New("storm")

// Occupy implements worker.Disk. A process has one Holder.
func (p *process) Occupy(string) (func(), error) { return func() {}, nil }

// ReadFile implements worker.Disk.
func (p *process) ReadFile(name string) ([]byte, error) {
	p.gate()
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	content, ok := p.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return content, nil
}

// Replace implements worker.Disk.
func (p *process) Replace(name string, content []byte) error {
	f := p.gate()
	if f.slow > 0 {
		time.Sleep(p.upTo(f.slow))
	}
	switch {
	case p.isDead():
		return errStorm
	case f.disk != nil:
		return f.disk
	}
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	if p.chance(0.05) {
		p.old = p.files[name]
	}
	p.files[name] = content
	return f.diskLate
}

// reach is the way of a call to the registry.
func (p *process) reach(ctx context.Context) error {
	f := p.gate()
	switch {
	case p.isDead(), f.refuse:
		return errStorm
	case f.hang:
		<-ctx.Done()
		return ctx.Err()
	}
	return ctx.Err()
}

// Info implements worker.Records.
func (p *process) Info() worker.Info { return p.s.records.Info() }

// Namespace implements worker.Records.
func (p *process) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	if err := p.reach(ctx); err != nil {
		return nil, err
	}
	return p.s.records.Namespace(ctx, want)
}

// Amend implements worker.Records.
func (p *process) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	return p.s.records.Amend(ctx, old, next)
}

// Reserved implements worker.Records.
func (p *process) Reserved(ctx context.Context) ([]worker.Adoptable, error) { return nil, p.reach(ctx) }

// List implements worker.Records.
func (p *process) List(ctx context.Context) ([]worker.Record, error) {
	if err := p.reach(ctx); err != nil {
		return nil, err
	}
	time.Sleep(p.upTo(5 * time.Millisecond)) // something may come in between
	return p.s.records.List(ctx)
}

// Put implements worker.Records. A write may arrive, and its answer not, and it may
// arrive when nobody waits for it any more.
func (p *process) Put(ctx context.Context, r worker.Record) (string, error) {
	f := p.gate()
	if !p.isDead() && p.chance(f.late) {
		p.ended.Go(func() {
			time.Sleep(p.upTo(100 * time.Second))
			_, _ = p.s.put(context.Background(), r)
		})
		<-ctx.Done()
		return "", ctx.Err()
	}
	if err := p.reach(ctx); err != nil {
		return "", err
	}
	version, err := p.s.put(ctx, r)
	p.gate()
	if p.isDead() || p.chance(f.deaf) {
		return "", errStorm
	}
	return version, err
}

// Announce implements worker.Records.
func (p *process) Announce(ctx context.Context, peer worker.Peer) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	return p.s.records.Announce(ctx, peer)
}

// Withdraw implements worker.Records.
func (p *process) Withdraw(ctx context.Context, peer worker.Peer) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	return p.s.records.Withdraw(ctx, peer)
}

// Peers implements worker.Records.
func (p *process) Peers(ctx context.Context) ([]worker.Peer, error) {
	if err := p.reach(ctx); err != nil {
		return nil, err
	}
	return p.s.records.Peers(ctx)
}

// Close implements worker.Records.
func (p *process) Close() error { return nil }
