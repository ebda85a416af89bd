package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/report"
)

// phase is one load on one node.
type phase struct {
	part     string
	protocol string
	load     string  // "capacity", "0.5x", "64 connections"
	offered  float64 // requests per second; 0: as many as are answered
	*tally
	goodput float64 // IDs per second that came in time
	cpu     float64 // what the node used, of one processor
	memory
}

// memory is what the node held, in bytes: before the first load of all, at most during
// this one, and after it.
type memory struct {
	before, peak, after int64
}

// stockTags and stockStep make IDs that never run out in the part cpu.
const (
	stockTags = 8
	stockStep = 1_000_000
)

// measure runs the chosen parts with the chosen protocols. It returns the version of
// MariaDB, too.
func measure(ctx context.Context, opt options, progress io.Writer) (phases []phase, version string, err error) {
	fmt.Fprintln(progress, "building leaf and starting MariaDB")
	s, err := newStage(ctx, opt)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	slow, stock := tagsNamed("slow", opt.tags), tagsNamed("stock", stockTags)
	if err := errors.Join(s.prepare(ctx, slow, 1), s.prepare(ctx, stock, stockStep)); err != nil {
		return nil, "", err
	}
	// One ledger for all nodes: they share the rows.
	parts := map[string]struct {
		run    func(ctx context.Context, b *bench) error
		tags   []string
		issued *ledger
	}{
		partStore: {storePart, slow, newLedger(len(slow))},
		partCPU:   {cpuPart, stock, newLedger(len(stock))},
	}
	for _, part := range opt.parts {
		for _, name := range opt.protocols {
			p, err := protocolNamed(name)
			if err != nil {
				return nil, "", err
			}
			b := &bench{options: opt, part: part, protocol: name, progress: progress}
			b.load = load{tags: parts[part].tags, issued: parts[part].issued, deadline: opt.deadline, warmUp: opt.warmUp, slice: opt.slice}
			if err := s.with(ctx, part+"-"+name, p, b, parts[part].run); err != nil {
				return nil, "", fmt.Errorf("%s over %s: %w", part, name, err)
			}
			phases = append(phases, b.phases...)
		}
	}
	return phases, s.version, ctx.Err()
}

func tagsNamed(prefix string, n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return tags
}

// with runs part on a new node.
func (s *stage) with(ctx context.Context, name string, p protocol, b *bench, part func(context.Context, *bench) error) (err error) {
	b.node, err = s.startNode(ctx, name, p)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; the node says: %s", err, b.node.says())
		}
		err = errors.Join(err, b.node.stop())
	}()
	dial, disconnect, err := p.connect(b.node.Addr)
	if err != nil {
		return err
	}
	defer disconnect()
	b.load.dial = dial
	return part(ctx, b)
}

// bench is one part over one protocol.
type bench struct {
	options
	part, protocol string
	node           *node
	load           load
	progress       io.Writer
	phases         []phase
}

// storePart measures the capacity and then loads of it.
func storePart(ctx context.Context, b *bench) error {
	capacity, err := b.phase(ctx, "capacity", 0, func(ctx context.Context) *tally { return b.load.closed(ctx, b.conns) })
	if err != nil {
		return err
	}
	if capacity == 0 {
		return fmt.Errorf("no ID came in %v", b.slice)
	}
	for _, times := range []float64{0.5, 1, 2, 5} {
		rate := times * capacity
		if _, err := b.phase(ctx, fmt.Sprintf("%gx", times), rate, func(ctx context.Context) *tally { return b.load.open(ctx, rate) }); err != nil {
			return err
		}
	}
	return nil
}

// cpuPart saturates the processor, and then some, in turns: whatever else the machine does
// would decide between two figures that were taken once.
func cpuPart(ctx context.Context, b *bench) error {
	for range b.rounds {
		for _, times := range []int{1, 5} {
			conns := times * b.conns
			if _, err := b.phase(ctx, fmt.Sprintf("%d callers", conns), 0, func(ctx context.Context) *tally { return b.load.closed(ctx, conns) }); err != nil {
				return err
			}
		}
	}
	b.phases = medians(b.phases)
	return nil
}

// medians returns of each load, in the order of their first turns, the turn with the
// median goodput, and adds to it what should not have happened in the others.
func medians(turns []phase) (chosen []phase) {
	for i, first := range turns {
		same := func(p phase) bool { return p.load == first.load }
		if slices.IndexFunc(turns, same) < i {
			continue
		}
		all := report.Pick(turns, same)
		slices.SortStableFunc(all, func(a, b phase) int { return cmp.Compare(a.goodput, b.goodput) })
		middle := all[len(all)/2]
		for _, other := range all {
			if other.tally != middle.tally {
				middle.twice += other.twice
				middle.noHint += other.noHint
				middle.count[broken] += other.count[broken]
			}
			middle.peak = max(middle.peak, other.peak)
			if middle.trouble == "" {
				middle.trouble = other.trouble
			}
		}
		chosen = append(chosen, middle)
	}
	return chosen
}

// phase runs one load, notes what became of it, and returns the goodput.
func (b *bench) phase(ctx context.Context, name string, offered float64, run func(ctx context.Context) *tally) (goodput float64, err error) {
	fmt.Fprintf(b.progress, "%s over %s, %s\n", b.part, b.protocol, name)
	p := phase{part: b.part, protocol: b.protocol, load: name, offered: offered}
	if len(b.phases) > 0 {
		p.before = b.phases[0].before
	} else if p.before, _, err = b.node.Memory(); err != nil {
		return 0, err
	}
	if err := b.node.ForgetPeak(); err != nil {
		return 0, err
	}
	spent, began := b.node.Spending(), time.Now()
	p.tally = run(ctx)
	p.cpu = spent(time.Since(began).Seconds()) / 1e6
	if _, p.peak, err = b.node.Memory(); err != nil {
		return 0, err
	}
	if err := b.rest(ctx); err != nil {
		return 0, err
	}
	if p.after, _, err = b.node.Memory(); err != nil {
		return 0, err
	}
	p.goodput = float64(p.count[issued]) / b.slice.Seconds()
	b.phases = append(b.phases, p)
	return p.goodput, ctx.Err()
}

// rest leaves the node alone, before its memory is read.
func (b *bench) rest(ctx context.Context) error {
	pause(ctx, b.settle)
	return ctx.Err()
}
