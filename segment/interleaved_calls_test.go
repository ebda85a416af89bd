package segment_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// interleavedNode is a data directory, and the process that uses it.
type interleavedNode struct {
	name string
	disk *disk
	proc *process // nil: there is none
}

// process is one process of a node.
type process struct {
	x        *interleaving
	node     *interleavedNode
	name     string
	alloc    *segment.Allocator
	stopping bool
	dead     bool
	served   bool // since all is well
}

// turn is a call that waits, or a client.
type turn struct {
	proc   *process
	what   string
	writes bool
	do     func(s *memory.Store) error // nil: it is a client
	done   func(err error)
}

// errWire is what a process gets whose call was lost.
var errWire = fmt.Errorf("the connection broke: %w", errDown)

// ownership is the time in which a process owns the tag.
type ownership struct {
	proc  *process
	ended bool
}

// Valid implements segment.Term.
func (o *ownership) Valid() bool {
	o.proc.x.mu.Lock()
	defer o.proc.x.mu.Unlock()
	return !o.ended && !o.proc.dead
}

// Term implements segment.Terms.
func (p *process) Term(string) (segment.Term, error) {
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	if o := p.x.owner; o != nil && o.proc == p {
		return o, nil
	}
	return nil, leaf.ErrNotReady
}

// own gives the tag to a process.
func (x *interleaving) own(p *process) {
	if x.owner != nil {
		x.owner.ended = true
	}
	x.owner = &ownership{proc: p}
	x.note("%s owns the tag", p.name)
}

// evenly is the runtime of a process, without chance.
type evenly struct{ leaf.Runtime }

func (evenly) Jitter(d time.Duration) time.Duration { return d - d/4 }

// start starts a process of the node, with a client.
func (x *interleaving) start(n *interleavedNode) {
	p := &process{x: x, node: n, name: fmt.Sprintf("%s/%d", n.name, len(x.log))}
	n.proc = p
	cfg := segment.Config{
		NodeID: n.name, Runtime: evenly{leaf.SystemRuntime()}, Terms: p, FixedStep: x.rng.IntN(2) == 0, MaxStep: 8,
		SyncInterval: time.Duration(1+x.rng.IntN(5)) * time.Second, KeepUnused: x.rng.IntN(8) == 0, Degrade: x.outages && x.rng.IntN(3) > 0,
	}
	if x.fence != nil {
		cfg.ClusterFence = &interleavedFence{p}
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: &interleavedStore{p}}}, nil)
	if err == nil {
		p.alloc, err = segment.New(router, n.disk, cfg)
	}
	if err != nil {
		panic(err)
	}
	n.disk.set(func(d *disk) {
		d.outside = func() error {
			return p.call(context.Background(), "disk", false, func(*memory.Store) error { return nil })
		}
	})
	x.note("%s starts", p.name)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = p.alloc.Start(ctx)
	}()
	go p.live()
}

// live is the client of a process.
func (p *process) live() {
	x := p.x
	for {
		var n, wait, era int
		var before int64
		turn := &turn{proc: p, what: "client", done: func(error) {
			n, wait, era, before = 1, 1+x.rng.IntN(3000), x.era, x.highest
			if x.rng.IntN(4) == 0 {
				n += x.rng.IntN(12)
			}
		}}
		if p.wait(context.Background(), turn) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(wait)*time.Millisecond)
		got, err := p.alloc.NextN(ctx, "order", n)
		cancel()
		x.mu.Lock()
		dead := p.dead
		if !dead {
			x.took(p, era, before, got, err)
		}
		x.mu.Unlock()
		if dead {
			return
		}
	}
}

// stop ends a process in an orderly way.
func (x *interleaving) stop(p *process) {
	if p.stopping {
		return
	}
	p.stopping = true
	x.note("%s stops", p.name)
	within := time.Duration(1+x.rng.IntN(8)) * time.Second
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		err := p.alloc.Close(ctx)
		_ = p.wait(context.Background(), &turn{proc: p, what: "end", done: func(error) {
			x.note("%s has stopped: %v", p.name, err)
			x.kill(p)
		}})
	}()
}

// kill ends a process at once. What it has sent may arrive later.
func (x *interleaving) kill(p *process) {
	if p == nil || p.dead {
		return
	}
	p.node.proc, p.node.disk = nil, p.node.disk.copy()
	p.dead = true
	var gone []*turn
	x.waiting = slices.DeleteFunc(x.waiting, func(t *turn) bool {
		if t.proc == p {
			gone = append(gone, t)
		}
		return t.proc == p
	})
	for _, t := range gone {
		if t.writes && x.rng.IntN(2) == 0 {
			x.late = append(x.late, t)
		}
		t.done(errWire)
	}
	if !p.stopping {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = p.alloc.Close(ctx)
		}()
	}
}

// carryOut makes a call.
func (x *interleaving) carryOut(t *turn) error {
	if t.writes {
		x.writes = append(x.writes, func(s *memory.Store) { _ = t.do(s) })
	}
	return t.do(x.store)
}

// give gives a turn to a client, or makes a call, or loses it.
func (x *interleaving) give(t *turn) {
	r := x.rng.IntN(1000)
	if x.calm || x.repairs > 0 && x.rng.IntN(40) > 0 { // a repair makes a hundred calls, and ends with the first that is lost
		r = 1000
	}
	what := fmt.Sprintf("%s %s", t.proc.name, t.what)
	switch {
	case t.do == nil:
		t.done(nil)
	case r < 3*x.faulty:
		x.note("%s: the request is lost", what)
		t.done(errWire)
	case r < 8*x.faulty:
		x.note("%s: %v, and the reply is lost", what, x.carryOut(t))
		t.done(errWire)
	case r < 12*x.faulty && t.writes:
		x.note("%s: late", what)
		x.late = append(x.late, t)
		t.done(errWire)
	default:
		err := x.carryOut(t)
		x.note("%s: %v", what, err)
		t.done(err)
	}
}

// wait waits for a turn, and returns when it is done, or with ctx. A call then arrives all the same.
func (p *process) wait(ctx context.Context, t *turn) error {
	x, then, done := p.x, t.done, make(chan error, 1)
	t.done = func(err error) {
		if then != nil && err == nil {
			then(err)
		}
		done <- err
	}
	x.mu.Lock()
	dead := p.dead
	if !dead {
		x.waiting = append(x.waiting, t)
	}
	x.mu.Unlock()
	if dead {
		return errWire
	}
	select {
	case x.asked <- struct{}{}:
	default:
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call is a call without an answer.
func (p *process) call(ctx context.Context, what string, writes bool, do func(s *memory.Store) error) error {
	return p.wait(ctx, &turn{proc: p, what: what, writes: writes, do: do})
}

// answered is a call with an answer. A replica that repeats it changes no answer.
func answered[T any](ctx context.Context, p *process, what string, writes bool, do func(s *memory.Store) (T, error)) (T, error) {
	var answer, none T
	first := true
	err := p.call(ctx, what, writes, func(s *memory.Store) error {
		got, err := do(s)
		if first {
			answer, first = got, false
		}
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

// interleavedStore is the database as a process reaches it.
type interleavedStore struct{ *process }

var _ segment.Board = (*interleavedStore)(nil)

func (p *interleavedStore) Bind(ctx context.Context, b segment.Binding) error {
	return p.call(ctx, "bind", true, func(s *memory.Store) error { return s.Bind(context.Background(), b) })
}

func (p *interleavedStore) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	return answered(ctx, p.process, "reserve", true, func(s *memory.Store) (segment.Reservation, error) {
		r, err := s.Reserve(context.Background(), req)
		if s == p.x.store {
			p.x.end = max(p.x.end, r.Range.Hi)
			p.x.note("%s: %v", p.name, r.Range)
		}
		return r, err
	})
}

func (p *interleavedStore) ReturnUnused(ctx context.Context, tag string, hi, lo int64) error {
	return p.call(ctx, fmt.Sprintf("return %d to %d", hi, lo), true, func(s *memory.Store) error { return s.ReturnUnused(context.Background(), tag, hi, lo) })
}

func (p *interleavedStore) Raise(ctx context.Context, tag string, above int64) (int64, error) {
	return answered(ctx, p.process, fmt.Sprintf("raise %d", above), true, func(s *memory.Store) (int64, error) { return s.Raise(context.Background(), tag, above) })
}

func (p *interleavedStore) Lookup(ctx context.Context, tag string) (segment.Row, error) {
	return answered(ctx, p.process, "look up", false, func(s *memory.Store) (segment.Row, error) { return s.Lookup(context.Background(), tag) })
}

func (p *interleavedStore) Rows(ctx context.Context) ([]segment.Row, error) {
	return answered(ctx, p.process, "rows", false, func(s *memory.Store) ([]segment.Row, error) { return s.Rows(context.Background()) })
}

func (p *interleavedStore) Notices(ctx context.Context) ([]segment.Notice, error) {
	return answered(ctx, p.process, "notices", false, func(s *memory.Store) ([]segment.Notice, error) { return s.Notices(context.Background()) })
}

func (p *interleavedStore) Post(ctx context.Context, n segment.Notice) error {
	return p.call(ctx, fmt.Sprintf("post %+v", n), true, func(s *memory.Store) error { return s.Post(context.Background(), n) })
}

func (p *interleavedStore) Answer(ctx context.Context, a segment.Answer) error {
	return p.call(ctx, fmt.Sprintf("answer %+v", a), true, func(s *memory.Store) error { return s.Answer(context.Background(), a) })
}

func (p *interleavedStore) Answers(ctx context.Context, tag string) ([]segment.Answer, error) {
	return answered(ctx, p.process, "answers", false, func(s *memory.Store) ([]segment.Answer, error) { return s.Answers(context.Background(), tag) })
}

func (p *interleavedStore) Forget(ctx context.Context, tag string, asked int64) error {
	return p.call(ctx, "forget", true, func(s *memory.Store) error { return s.Forget(context.Background(), tag, asked) })
}

func (p *interleavedStore) Forgotten(ctx context.Context) (int64, error) {
	return answered(ctx, p.process, "forgotten", false, func(s *memory.Store) (int64, error) { return s.Forgotten(context.Background()) })
}

func (p *interleavedStore) Enter(ctx context.Context, m segment.Member) error {
	return p.call(ctx, "enter", true, func(s *memory.Store) error { return s.Enter(context.Background(), m) })
}

func (p *interleavedStore) Leave(ctx context.Context, node string) error {
	return p.call(ctx, "leave", true, func(s *memory.Store) error { return s.Leave(context.Background(), node) })
}

func (p *interleavedStore) Nodes(ctx context.Context) ([]segment.Member, error) {
	return answered(ctx, p.process, "nodes", false, func(s *memory.Store) ([]segment.Member, error) { return s.Nodes(context.Background()) })
}

// interleavedFence is the cluster fence as a process reaches it.
type interleavedFence struct{ *process }

// onFence is a call of the cluster fence, which no replica of the database repeats.
func onFence(ctx context.Context, p *process, what string, writes bool, do func(f *memory.Fence) error) error {
	made := false
	return p.call(ctx, what, writes, func(*memory.Store) error {
		again := made
		made = true
		switch {
		case again:
			return nil
		case p.x.away:
			return errDown
		}
		return do(p.x.fence)
	})
}

func (p *interleavedFence) Open(ctx context.Context) (space string, created bool, err error) {
	var opened string
	var fresh bool
	err = onFence(ctx, p.process, "open", true, func(f *memory.Fence) (err error) {
		opened, fresh, err = f.Open(context.Background())
		p.x.space = opened
		return err
	})
	if err != nil {
		return "", false, err
	}
	return opened, fresh, nil
}

func (p *interleavedFence) Identify(context.Context, string, string) (string, error) { return "", nil }

func (p *interleavedFence) Read(ctx context.Context, space, tag string) (fence.Entry, bool, error) {
	var e fence.Entry
	var found bool
	err := onFence(ctx, p.process, fmt.Sprintf("read %q", tag), false, func(f *memory.Fence) (err error) {
		e, found, err = f.Read(context.Background(), space, tag)
		p.x.note("%s: %+v", p.name, e)
		return err
	})
	if err != nil {
		return fence.Entry{}, false, err
	}
	return e, found, nil
}

func (p *interleavedFence) Swap(ctx context.Context, space, tag string, old *fence.Entry, end int64) (fence.Entry, error) {
	var e fence.Entry
	err := onFence(ctx, p.process, fmt.Sprintf("swap %q from %+v to %d", tag, old, end), true, func(f *memory.Fence) (err error) {
		e, err = f.Swap(context.Background(), space, tag, old, end)
		return err
	})
	if err != nil {
		return fence.Entry{}, err
	}
	return e, nil
}
