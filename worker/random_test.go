package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestStorm runs three nodes on a few numbers through half an hour of crashes, lost, late
// and repeated writes, partitions, wrong clocks, bad disks and operators, one world per
// seed. No two generators may issue in one moment of one number; every ID lies below a T
// that the registry held; and when the storm is over, all numbers are in use again and
// no alarm is left. LEAF_SEED=n runs that seed alone.
func TestStorm(t *testing.T) {
	first, seeds := uint64(1), long.Load(5, 2_000)
	if text := os.Getenv("LEAF_SEED"); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
		if seeds, err = strconv.Atoi(os.Getenv("LEAF_SEEDS")); err != nil {
			seeds = 1
		}
	}
	for i := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) { runStorm(t, first+i) })
		if t.Failed() {
			return
		}
	}
}

func runStorm(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &storm{t: t, seed: seed, highest: map[int64]int64{}, spans: map[span][]int64{}}
	if rng.IntN(2) == 0 {
		s.kind = worker.Fixed
	}
	s.records = newRecords(s.kind)
	numbers := leaf.Range{Lo: 0, Hi: 1 + rng.Int64N(3)}
	standby, keep, policy := rng.IntN(4) == 0, rng.IntN(4) == 0, snowflake.Policy(rng.IntN(2))
	asks := rng.IntN(3) == 0
	ns := worker.Namespace{Name: "test", Fingerprint: snowflake.Leaf().Fingerprint()}
	if err := worker.NewPool(s.records).Init(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	var machines []*machine
	for i := range 3 {
		m := &machine{s: s, address: fmt.Sprintf("10.0.0.%d:80", i), rng: rand.New(rand.NewPCG(seed, uint64(i+1))), files: map[string][]byte{}, offset: time.Duration(rng.IntN(5)-2) * time.Second, alarms: &alarms{active: map[string]leaf.Alarm{}}}
		m.cfg = worker.Config{
			Layout: snowflake.Leaf(), Namespace: "test", Address: m.address, Numbers: numbers, NodeID: m.address, Horizon: time.Minute,
			Standby: standby, KeepOnStop: keep, Policy: policy, Alarms: m.alarms, Layouts: furtherLayouts,
		}
		if asks {
			m.cfg.Clock = worker.ClockCheck{Self: m.address, Ask: func(_ context.Context, p worker.Peer) (time.Time, error) {
				for _, other := range machines {
					if other.address == p.Clock {
						if process := other.running(); process != nil {
							return process.Now(), nil
						}
					}
				}
				return time.Time{}, errStorm
			}}
		}
		machines = append(machines, m)
	}
	over := make(chan struct{})
	for _, m := range machines {
		m.start()
		m.ended.Go(func() { m.load(over) })
	}
	for end := time.Now().Add(time.Duration(15+rng.IntN(15)) * time.Minute); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.Int64N(int64(time.Minute))))
		strike(s, rng, machines)
	}
	calm(s, machines, numbers)
	close(over)
	for _, m := range machines {
		m.kill(false)
		m.ended.Wait()
	}
}

// start makes the machine's next process.
func (m *machine) start() {
	p := &process{Runtime: leaf.SystemRuntime(), machine: m, rng: rand.New(rand.NewPCG(m.rng.Uint64(), 0)), begun: time.Now()}
	c := m.cfg
	c.Runtime, c.Elapsed = p, p.elapsed
	name := fmt.Sprintf("%s-%d-", m.address, time.Now().UnixMilli())
	c.Nonce = func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.nonce++
		return fmt.Sprint(name, p.nonce)
	}
	h, err := worker.New(worker.NewPool(p), p, c)
	if err != nil {
		m.s.t.Fatal(err)
	}
	p.holder = h
	m.mu.Lock()
	m.proc = p
	m.mu.Unlock()
	m.ended.Go(func() {
		if err := h.Start(context.Background()); err != nil {
			m.s.fail("%s: start: %v", m.address, err)
		}
	})
}

func (m *machine) running() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc
}

// kill ends the process, cleanly or at once.
func (m *machine) kill(clean bool) {
	m.mu.Lock()
	p := m.proc
	m.proc = nil
	m.mu.Unlock()
	if p == nil {
		return
	}
	if !clean {
		p.mu.Lock()
		p.dead = true
		p.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = p.holder.Close(ctx) // the file or the registry may be out of reach
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
}

// load takes IDs in whole tenths of a second.
func (m *machine) load(over chan struct{}) {
	rng := rand.New(rand.NewPCG(m.s.seed, uint64(len(m.address))))
	for {
		pause := time.Duration(1+rng.IntN(25)) * 100 * time.Millisecond
		time.Sleep(time.Until(time.Now().Truncate(100 * time.Millisecond).Add(pause)))
		select {
		case <-over:
			return
		default:
		}
		p := m.running()
		if p == nil {
			continue
		}
		p.gate()
		before := p.holder.Status()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		var ids []leaf.Range
		key := append([]string{""}, furtherLayouts...)[rng.IntN(1+len(furtherLayouts))]
		id, err := p.holder.Next(ctx, key)
		if err == nil {
			ids = append(ids, leaf.Range{Lo: id, Hi: id + 1})
			if rng.IntN(10) == 0 {
				more, _ := p.holder.NextN(ctx, key, 1+rng.IntN(9000))
				ids = append(ids, more...)
			}
		}
		cancel()
		if p.holder.Status().Losses == before.Losses {
			m.s.took(m, p.holder, before.Losses, ids, key)
		}
	}
}

// strike does one thing to the world.
func strike(s *storm, rng *rand.Rand, machines []*machine) {
	m := machines[rng.IntN(len(machines))]
	during := func(what string, change func(*faults)) {
		lasts := time.Duration(rng.Int64N(int64(150 * time.Second)))
		s.note("%s %s for %v", m.address, what, lasts)
		m.mu.Lock()
		change(&m.faults)
		m.mu.Unlock()
		m.ended.Go(func() {
			time.Sleep(lasts)
			m.mu.Lock()
			m.faults = faults{}
			m.mu.Unlock()
		})
	}
	switch rng.IntN(20) {
	case 0, 1:
		m.restart(rng)
	case 2:
		during("is cut off", func(f *faults) { f.refuse = true })
		m.restart(rng)
	case 3:
		during("hangs", func(f *faults) { f.hang = true })
	case 4:
		during("is cut off", func(f *faults) { f.refuse = true })
	case 5:
		during("loses answers", func(f *faults) { f.deaf = 0.5 })
	case 6:
		during("is late", func(f *faults) { f.late = 0.3 })
	case 7:
		during("has a full disk", func(f *faults) { f.disk = errStorm })
	case 8:
		during("has a strange disk", func(f *faults) { f.diskLate = errStorm })
	case 9:
		during("has a slow disk", func(f *faults) { f.slow = 8 * time.Second })
	case 10:
		lasts := time.Duration(rng.Int64N(int64(100 * time.Second)))
		s.note("%s is suspended for %v", m.address, lasts)
		m.mu.Lock()
		m.stop = time.Now().Add(lasts)
		m.mu.Unlock()
	case 11, 12, 13:
		m.step(rng)
	case 14:
		m.mu.Lock()
		p := m.proc
		if m.offset.Abs() > time.Hour {
			p = nil
		}
		m.mu.Unlock()
		if p != nil {
			s.note("%s: an operator confirms the clock", m.address)
			m.ended.Go(func() { _, _ = p.holder.ConfirmClock() }) // in vain where the layout has no such time
		}
	case 15, 16:
		s.disturb(rng, rng.Int64N(machines[0].cfg.Numbers.Hi))
	case 17:
		s.wipe(machines)
	case 18, 19:
		all := rng.IntN(2) == 0
		lasts := time.Duration(rng.Int64N(int64(3 * time.Minute)))
		s.note("the registry is down for %v, refusing %v", lasts, all)
		for _, m := range machines {
			m.mu.Lock()
			m.faults.refuse, m.faults.hang = all, !all
			m.mu.Unlock()
			m.ended.Go(func() {
				time.Sleep(lasts)
				m.mu.Lock()
				m.faults = faults{}
				m.mu.Unlock()
			})
		}
	}
}

// restart ends the process and begins one, with the file as it is or as it may come
// out of an accident.
func (m *machine) restart(rng *rand.Rand) {
	clean, away := rng.IntN(2) == 0, time.Duration(rng.Int64N(int64(time.Minute)))
	if rng.IntN(2) == 0 {
		away = 0
	}
	file := rng.IntN(8)
	m.s.note("%s restarts, clean %v, away %v, file %d", m.address, clean, away, file)
	m.mu.Lock()
	if m.offset.Abs() > time.Hour {
		m.offset = 0 // a clock that is wrong by a year at a start burns the number, which nobody can see
	}
	m.mu.Unlock()
	m.kill(clean)
	m.mu.Lock()
	switch name := "worker.json"; file {
	case 0:
		delete(m.files, name)
	case 1:
		m.files[name] = append(slices.Clone(m.files[name]), 'x')
	case 2:
		if m.old != nil && m.s.noticed(m.old) {
			m.files[name] = m.old
		}
	}
	m.mu.Unlock()
	time.Sleep(away)
	if rng.IntN(2) == 0 {
		m.step(rng)
	}
	m.start()
}

// noticed reports whether the registry can see that a file is an old copy: it was
// renewed since, or belongs to somebody else. With a fixed number and the registry
// down nobody can.
func (s *storm) noticed(content []byte) bool {
	if s.kind == worker.Fixed {
		return false
	}
	var f struct {
		Number, Inner int64
		Nonce         string
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	if err := json.Unmarshal(line, &f); err != nil {
		s.fail("old file %s: %v", content, err)
	}
	r := s.records.record(f.Number)
	return r.Nonce != f.Nonce || r.Floor > f.Inner || r.Released
}

// step moves the machine's clock, or sets it right.
func (m *machine) step(rng *rand.Rand) {
	if m.s.records.unborn() {
		return // a wipe while clocks are wrong is not detectable (rule L)
	}
	steps := []time.Duration{
		-time.Hour, -10 * time.Minute, -time.Minute, -time.Minute, -20 * time.Second, -20 * time.Second, -10 * time.Second, -5 * time.Second, -2 * time.Second, -time.Second,
		-3 * time.Millisecond, time.Second, 5 * time.Second, 9 * time.Second, time.Minute, 10 * time.Minute, time.Hour, year,
	}
	by := steps[rng.IntN(len(steps))]
	m.mu.Lock()
	if m.offset.Abs() > 2*time.Minute || rng.IntN(4) == 0 {
		by = -m.offset
	}
	if m.proc == nil {
		by = min(by, time.Hour) // see restart
	}
	m.offset += by
	m.mu.Unlock()
	m.s.note("%s: the clock steps by %v", m.address, by)
}

// disturb does to a record what operators and accidents do.
func (s *storm) disturb(rng *rand.Rand, number int64) {
	what := rng.IntN(3)
	s.note("number %d: %s", number, []string{"claim deleted", "overwritten", "freed"}[what])
	if what == 2 {
		_ = worker.NewPool(s.records).Free(s.t.Context(), number)
		return
	}
	s.records.set(func(r *records) {
		rec, used := r.byNum[number]
		if !used {
			return
		}
		rec.Nonce = []string{"", "somebody"}[what]
		rec.Address, rec.Released = "", false
		r.version++
		rec.Version = fmt.Sprint(r.version)
		r.byNum[number] = rec
	})
}

// wipe deletes everything, if all clocks are about right and always were as far as any
// T tells.
func (s *storm) wipe(machines []*machine) {
	limit := time.Now().AddDate(24, 0, 0).Add(time.Minute + 3*time.Second).UnixMilli()
	for _, m := range machines {
		m.mu.Lock()
		wrong := m.offset.Abs() > 2*time.Second
		m.mu.Unlock()
		if wrong {
			return
		}
	}
	s.mu.Lock()
	for _, highest := range s.highest {
		if highest > limit {
			s.mu.Unlock()
			return
		}
	}
	s.mu.Unlock()
	s.note("the registry is wiped")
	s.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
}

func (r *records) unborn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ns == nil
}

// calm ends all faults and fails unless every number that can be in use is, soon.
func calm(s *storm, machines []*machine, numbers leaf.Range) {
	s.note("the storm is over")
	time.Sleep(3 * time.Minute) // the last strikes end
	for _, m := range machines {
		m.mu.Lock()
		m.offset, m.stop, m.faults = 0, time.Time{}, faults{}
		m.mu.Unlock()
		if m.running() == nil {
			m.start()
		}
		_, _ = m.running().holder.ConfirmClock()
	}
	latest := time.Now().AddDate(24, 0, 0).UnixMilli()
	s.mu.Lock()
	for _, highest := range s.highest {
		latest = max(latest, highest)
	}
	s.mu.Unlock()
	for _, m := range machines {
		latest = max(latest, m.running().holder.Status().Bound)
	}
	time.Sleep(time.UnixMilli(latest).Sub(time.Now().AddDate(24, 0, 0)) + 3*time.Minute)
	var serving int64
	for _, m := range machines {
		st := m.running().holder.Status()
		if !st.Ready {
			s.note("%s: %+v", m.address, st)
			continue
		}
		serving++
		m.alarms.mu.Lock()
		for _, a := range m.alarms.active {
			if a.Code == leaf.AlarmExhausted && a.Subject == "worker IDs" {
				continue // true in a range as small as this one
			}
			s.note("%s: alarm %+v", m.address, a)
			serving -= 10
		}
		m.alarms.mu.Unlock()
	}
	if serving != min(3, numbers.Hi) {
		s.fail("after the storm not all of %d nodes serve without an alarm", min(3, numbers.Hi))
	}
}
