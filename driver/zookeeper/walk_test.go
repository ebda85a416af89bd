package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestWalk runs nodes on five machines, two of which have one address, beside an ensemble in memory for some minutes. They
// are killed, frozen and cut off, lose requests, replies, sessions and data directories, and an operator takes their numbers.
// In two thirds of the seeds the nodes are of both kinds. In half, the path or a part of it is deleted, at once or node by
// node, copied, or restored from a backup without its namespaces; else the clocks are up to minutes apart. No two holders may
// issue with a number at one time, and nodes of one kind serve when the faults have ended. A seed repeats a run but for the
// order in which goroutines run at one moment.
func TestWalk(t *testing.T) {
	t.Parallel()
	long.Plain(t)
	seeds := long.Load(uint64(25), 3_000)
	for seed := uint64(0); seed < seeds && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { newWalk(seed).run(t, seed) })
	}
}

// walk is one run. Its lock guards the machines, too.
type walk struct {
	e        *ensemble
	kinds    int  // 0: one; else one of so many nodes is of the other kind
	harm     bool // the path is deleted, copied and restored
	machines []*machine
	backup   tree
	backedUp int64 // its zxid
	copied   bool
	over     chan struct{}

	mu   sync.Mutex
	rng  *rand.Rand
	held map[holding]*[2]int64
	log  []string
}

// holding is one session of a process with a number.
type holding struct {
	by             *process
	losses, number int64
}

// machine has one node after the other.
type machine struct {
	*walk
	name, address string
	ahead         time.Duration // of its clock
	files         map[string][]byte
	frozen, cut   time.Time
	node          *process
}

// process is the runtime and the disk of a node.
type process struct {
	leaf.Runtime
	*machine
	*worker.Holder
	name  string
	begun time.Time
	dead  bool
	slow  time.Duration
}

const walkRoot = "/snowflake/test"

var walkConfig = zookeeper.Config{Servers: []string{"memory:2181"}, Name: "test"}

func newWalk(seed uint64) *walk {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &walk{e: newEnsemble(seed), rng: rng, kinds: []int{0, 2, 10}[rng.IntN(3)], harm: rng.IntN(2) == 0, held: map[holding]*[2]int64{}, over: make(chan struct{})}
	apart := 1 + rng.IntN(200)
	if w.harm { // what a clock that was ahead has issued is forgotten then
		apart = 1
	}
	for i, address := range []string{"10.0.0.1:80", "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"} {
		ahead := time.Duration(apart*(rng.IntN(19)-9)) * 100 * time.Millisecond
		w.machines = append(w.machines, &machine{walk: w, name: string(rune('a' + i)), address: address, ahead: ahead, files: map[string][]byte{}})
	}
	return w
}

func (w *walk) run(t *testing.T, seed uint64) {
	time.Sleep(25 * 365 * 24 * time.Hour) // the clock of a bubble begins before the epoch
	var ended sync.WaitGroup
	for _, m := range w.machines {
		ended.Go(func() { w.each(2500*time.Millisecond, m.take) })
	}
	ended.Go(func() { w.each(time.Second, func() { w.locked(func() { w.e.expire(15 * time.Second) }) }) })
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(w.upTo(300*time.Millisecond, 8*time.Second)) {
		w.strike(w.machines[w.chance(len(w.machines))])
	}
	w.calm(t, seed)
	close(w.over)
	for _, m := range w.machines {
		m.stop(false)
	}
	ended.Wait()
	time.Sleep(time.Hour) // until all calls have ended
	all := slices.Collect(maps.Keys(w.held))
	for i, a := range all {
		for _, b := range all[:i] {
			if x, y := w.held[a], w.held[b]; a.number == b.number && x[0] <= y[1] && y[0] <= x[1] {
				t.Fatalf("seed %d: number %d is that of %s from %d to %d ms, and of %s from %d to %d\n%s", seed, a.number, a.by.name, x[0], x[1], b.by.name, y[0], y[1], strings.Join(w.log, "\n"))
			}
		}
	}
}

// calm ends all faults. The first two machines have one address, so the first one stops.
func (w *walk) calm(t *testing.T, seed uint64) {
	w.machines[0].stop(true)
	time.Sleep(2 * time.Minute) // until no machine suffers
	for _, m := range w.machines[1:] {
		m.start()
	}
	if w.kinds > 0 || w.copied {
		return
	}
	time.Sleep(10 * time.Minute)
	for _, m := range w.machines[1:] {
		if s := m.running().Status(); !s.Ready {
			t.Errorf("seed %d: after the faults, %s is %s: %s\n%s", seed, m.name, s.State, s.Reason, strings.Join(w.log, "\n"))
		}
	}
}

// each calls f again and again, at whole tenths of a second, until the run is over.
func (w *walk) each(pause time.Duration, f func()) {
	for {
		time.Sleep(time.Until(time.Now().Truncate(100 * time.Millisecond).Add(100*time.Millisecond + w.upTo(pause).Truncate(100*time.Millisecond))))
		select {
		case <-w.over:
			return
		default:
			f()
		}
	}
}

func (w *walk) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *walk) chance(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// upTo returns a time below one of those given.
func (w *walk) upTo(limits ...time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(limits[w.rng.IntN(len(limits))])))
}

// locked has the ensemble for itself.
func (w *walk) locked(f func()) {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	f()
}

// issued notes that an ID has this time.
func (w *walk) issued(by holding, at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[by] == nil {
		w.log = append(w.log, time.Now().Format("04:05.000 ")+fmt.Sprintf("%s issues with %d", by.by.name, by.number))
		w.held[by] = &[2]int64{at, at}
	}
	w.held[by][0], w.held[by][1] = min(w.held[by][0], at), max(w.held[by][1], at)
}

// running is the node, nil while none runs.
func (m *machine) running() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node
}

// take takes an ID from the node, if one runs.
func (m *machine) take() {
	p := m.running()
	if p == nil || p.pass() != nil {
		return
	}
	before := p.Status().Losses
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if id, err := p.Next(ctx, ""); err == nil && p.Status().Losses == before {
		f, _ := snowflake.Leaf().Decode(id)
		m.issued(holding{p, before, f.Worker}, snowflake.Leaf().Millis(f.Unit))
	}
}

// gate holds the process up until a moment, which may change meanwhile. It fails if the process has ended.
func (p *process) gate(until func() time.Time) error {
	for {
		p.mu.Lock()
		left, dead := time.Until(until()), p.dead
		p.mu.Unlock()
		if dead {
			return errors.New("the process has ended")
		}
		if left <= 0 {
			return nil
		}
		time.Sleep(min(left, time.Second))
	}
}

func (p *process) thaw() time.Time { return p.frozen }

// pass holds a request up while the process is frozen or cut off.
func (p *process) pass() error {
	return p.gate(func() time.Time { return time.UnixMilli(max(p.frozen.UnixMilli(), p.cut.UnixMilli())) })
}

// Now is the machine's clock, and Wait ends when the process runs.
func (p *process) Now() time.Time {
	_ = p.gate(p.thaw)
	return time.Now().Round(0).Add(p.ahead)
}

func (p *process) Wait(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	defer func() { _ = p.gate(p.thaw) }()
	return p.Runtime.Wait(ctx, wake, d)
}

func (p *process) Occupy(string) (func(), error) { return func() {}, nil }

func (p *process) ReadFile(name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if content, ok := p.files[name]; ok {
		return content, nil
	}
	return nil, fs.ErrNotExist
}

func (p *process) Replace(name string, content []byte) error {
	if err := p.gate(p.thaw); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[name] = content
	return nil
}

// fate says which of one hundred requests, and which reply, is lost, and how long the way is.
func (p *process) fate() (request, reply bool, delay time.Duration) {
	lost := p.chance(100)
	if lost == 2 {
		return true, true, p.upTo(10 * time.Second) // the caller has gone
	}
	return lost != 0, lost != 1, p.upTo(p.slow)
}

// open returns a handle of one of the kinds on the ensemble.
func (w *walk) open(recycle bool, pass func() error, fate func() (request, reply bool, delay time.Duration)) worker.Registry {
	way := func() zookeeper.Client { return &way{e: w.e, pass: pass, fate: fate} }
	if recycle {
		r, _ := zookeeper.NewRecycle(walkConfig)
		r.Ask(way)
		return worker.NewPool(r)
	}
	o, _ := zookeeper.NewOriginal(walkConfig)
	o.Ask(way)
	return o
}

// start starts the node, if it does not run and the machine is not frozen.
func (m *machine) start() {
	m.mu.Lock()
	busy := m.node != nil || time.Now().Before(m.frozen)
	m.mu.Unlock()
	if busy {
		return
	}
	p := &process{Runtime: leaf.SystemRuntime(), machine: m, name: m.name + time.Now().Format(" 04:05.000"), begun: time.Now(), slow: m.upTo(5*time.Millisecond, 100*time.Millisecond) + 1}
	cfg := worker.Config{
		Layout: snowflake.Leaf(), Namespace: "test", Address: m.address, Numbers: leaf.Range{Lo: 0, Hi: 1024}, NodeID: m.name,
		Horizon: time.Minute, Timeout: 4 * time.Second, Runtime: p, Elapsed: func() time.Duration { return p.Now().Sub(p.begun.Add(p.ahead)) },
	}
	recycle := m.kinds > 0 && m.chance(m.kinds) == 0
	if recycle {
		cfg.Numbers.Hi = 4
	}
	m.note("%s starts, recycle %v", p.name, recycle)
	var err error
	if p.Holder, err = worker.New(m.open(recycle, p.pass, p.fate), p, cfg); err != nil {
		panic(err)
	}
	go func() { _ = p.Start(context.Background()) }()
	m.mu.Lock()
	m.node = p
	m.mu.Unlock()
}

// stop ends the node, cleanly or not.
func (m *machine) stop(clean bool) {
	m.mu.Lock()
	p := m.node
	if m.node = nil; p != nil && !clean {
		p.dead = true
	}
	m.mu.Unlock()
	if p == nil {
		return
	}
	m.note("%s ends, clean %v", p.name, clean)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = p.Close(ctx)
	m.mu.Lock()
	p.dead = true
	m.mu.Unlock()
}

// suffer freezes the machine, or cuts it off.
func (m *machine) suffer(freeze bool) {
	until := time.Now().Add(m.upTo(3*time.Second, 20*time.Second, 100*time.Second))
	m.note("%s suffers until %s, freeze %v", m.name, until.Format("04:05"), freeze)
	m.mu.Lock()
	defer m.mu.Unlock()
	if freeze {
		m.frozen = until
	} else {
		m.cut = until
	}
}

// strike does one thing to the world.
func (w *walk) strike(m *machine) {
	switch r := w.chance(20); {
	case r < 3:
		m.stop(w.chance(2) == 0)
		if w.chance(8) == 0 {
			w.note("%s loses its files", m.name)
			w.mu.Lock()
			clear(m.files)
			w.mu.Unlock()
		}
	case r < 8:
		m.start()
	case r < 13:
		m.suffer(r < 10)
	case r < 14:
		w.note("all sessions end")
		w.locked(func() { w.e.expire(0) })
	case r < 15:
		w.operate()
	case r < 16 && w.harm:
		for _, m := range w.machines {
			if w.chance(2) == 0 {
				m.suffer(w.chance(2) == 0)
			}
		}
		w.hurt()
		for _, m := range w.machines {
			m.start()
		}
	case r < 17:
		w.locked(func() { w.backup, w.backedUp = w.e.leader(), w.e.zxid })
	}
}

// operate takes a number from its owner, or types leaf worker init where the records show that the registry was used.
func (w *walk) operate() {
	recycle := w.kinds > 0 && w.chance(2) == 0
	r := w.open(recycle, func() error { return nil }, func() (request, reply bool, delay time.Duration) { return true, true, 0 })
	defer r.Close()
	used, number := false, int64(w.chance(5))
	w.locked(func() {
		t := w.e.leader()
		used = !recycle && len(t.children(walkRoot+"/forever")) > 0 || recycle && len(t.children(walkRoot+"/leaf_pool/bounds")) > 0
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if used && number == 0 {
		w.note("init, recycle %v: %v", recycle, r.Init(ctx, worker.NewNamespace("test", snowflake.Leaf(), 0)))
		return
	}
	w.note("free %d, recycle %v: %v", number, recycle, r.Free(ctx, number))
}

// hurt deletes, restores or copies the path.
func (w *walk) hurt() {
	what := []string{"restore", "restore", "copy", "", "/forever", "/leaf_namespace", "/leaf_owner", "/leaf_temporary", "/leaf_pool", "/leaf_pool/namespace", "/leaf_pool/claims", "/leaf_pool/bounds"}[w.chance(12)]
	w.note("hurt %q", what)
	switch {
	case what == "restore" && w.backup != nil:
		w.locked(func() {
			t := maps.Clone(w.backup)
			t.remove(walkRoot + "/leaf_namespace")
			t.remove(walkRoot + "/leaf_pool/namespace")
			w.e.zxid = w.backedUp
			w.e.become(t)
		})
	case what == "copy":
		version := int32(w.chance(2)) // of a program that makes a node and then sets its data
		w.locked(func() {
			w.copied = true
			t := tree{}
			for p, n := range w.e.leader() {
				w.e.zxid++
				n.stat.Czxid, n.stat.Version, n.stat.EphemeralOwner, n.made = w.e.zxid, version, 0, int(n.stat.NumChildren)
				t[p] = n
			}
			w.e.become(t)
		})
	case what != "restore":
		w.deleteAll(walkRoot+what, w.chance(2) == 0)
	}
}

// deleteAll is that of zkCli.sh. Slowly, others write meanwhile.
func (w *walk) deleteAll(p string, slowly bool) {
	var names []string
	w.locked(func() { names = w.e.leader().children(p) })
	for _, name := range names {
		w.deleteAll(path.Join(p, name), slowly)
	}
	if slowly {
		time.Sleep(w.upTo(10*time.Millisecond, time.Second))
	}
	w.locked(func() { _, _ = w.e.write(0, &zk.DeleteRequest{Path: p, Version: -1}) })
}
