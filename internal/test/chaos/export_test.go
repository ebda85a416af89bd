package chaos

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/internal/test/echo"
	"github.com/leaf-idgen/leaf/snowflake"
)

// Log, Verify and Client are what the tests look into.
type (
	Log    = idLog
	Sample = sample
	Stream = stream
)

// NewLog makes a log of snowflake IDs, or of others.
func NewLog(folder, node, name string, ofSnowflake bool) (*Log, error) {
	var f *fields
	if ofSnowflake {
		f = &fields{layout: snowflake.Leaf(), ahead: time.Second, behind: time.Second}
	}
	return newLog(folder, node, name, f)
}

// Write logs a reply.
func (l *idLog) Write(space string, life int, ids ...int64) error {
	return l.write(space, life, ids, idlog.Call{})
}

// WriteCall logs a reply of a tag in strict order to a call with these times.
func (l *idLog) WriteCall(space string, call idlog.Call, ids ...int64) error {
	l.strict = true
	return l.write(space, 1, ids, call)
}

// Close ends the log's file.
func (l *idLog) Close() error { return l.close() }

// Verify is what judges logs.
func Verify(ctx context.Context, folder string, logs ...*Log) (Verdict, error) {
	return verify(ctx, folder, logs)
}

// Ask runs a client of the server at addr for d and returns what it recorded, each
// outcome with its number, and the IDs that it logged.
func Ask(ctx context.Context, addr string, s Stream, d time.Duration) (samples []Sample, logged []int64, fault error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	c, err := newClient(&node{addr: addr}, s, time.Now(), func(_ string, _ int, ids []int64, _ idlog.Call) error {
		logged = append(logged, ids...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	c.run(ctx)
	samples, fault = c.results()
	return samples, logged, fault
}

// NewStream describes what a client asks for.
func NewStream(path string, count int, rate float64) Stream {
	return Stream{name: "test", space: "test", path: path, count: count, rate: rate}
}

// Outcome of a request.
func (s sample) Outcome() string { return s.outcome }

// Dealt returns the kinds of faults that a topology of that many kinds gets in n
// draws with a seed.
func Dealt(seed uint64, kinds, n int) []int {
	d := &deck{chance: newChance(seed).rand, size: kinds}
	var all []int
	for range n {
		card, _ := d.draw(func(int) bool { return true })
		all = append(all, card)
	}
	return all
}

// Turns returns what is wrong with how processes used worker IDs.
func Turns(tenants ...Tenant) []string {
	var all []tenant
	for _, t := range tenants {
		all = append(all, tenant{t.Worker, t.Process, span{time.UnixMilli(t.First), time.UnixMilli(t.Last)}})
	}
	return turns(all)
}

// Tenant is a process that issued under a worker ID, from and to in milliseconds.
type Tenant struct {
	Worker      int64
	Process     string
	First, Last int64
}

// Scene is a run that did not take place: one stream of each of three nodes.
type Scene struct {
	Fenced  bool // tags may latch
	Ran     time.Duration
	Kinds   []string // all of the group of nodes if their name begins with "node"
	Enough  bool
	Lost    time.Duration // by a machine that was busy
	Events  []Event
	Stock   bool // what the stream asks for
	Strict  bool
	Samples map[string][]Sample
}

// NewSample is a request.
func NewSample(due, latency time.Duration, outcome string) Sample {
	return Sample{due, latency, outcome}
}

// Judge returns the promises about faults that were broken in a scene, and the table
// of kinds.
func Judge(s Scene) (broken []string, kinds []Kind) {
	rep := Judged(s)
	for _, c := range rep.Checks {
		if !c.Kept {
			broken = append(broken, c.Text)
		}
	}
	return broken, rep.Kinds
}

// Judged returns the report about a scene.
func Judged(s Scene) *Report {
	r, samples := s.play()
	r.count(samples)
	r.judgeFaults(topologyDef{regress: s.Fenced}, samples)
	return r.report
}

// JudgeOrder returns the promises about tags in strict order that were broken in a scene whose logs showed v.
func JudgeOrder(s Scene, v Verdict, unordered bool) (broken []string) {
	r, samples := s.play()
	r.report.Verdict = v
	r.judgeOrder(topologyDef{unordered: unordered}, samples)
	return r.broken()
}

func (s Scene) play() (*run, [][]sample) {
	r := &run{cluster: &cluster{}, report: &Report{Ran: s.Ran, Enough: s.Enough, Events: s.Events, Machine: echo.Machine{Lost: s.Lost}}}
	for _, name := range s.Kinds {
		f := fault{name: name, group: ofServers}
		if name == nodeKilled {
			f.group = ofNodes
		}
		r.cluster.faults = append(r.cluster.faults, f)
		r.report.Kinds = append(r.report.Kinds, Kind{Name: name})
	}
	var samples [][]sample
	for _, name := range []string{"a", "b", "c"} {
		n := &node{name: name}
		r.cluster.nodes = append(r.cluster.nodes, n)
		r.clients = append(r.clients, &client{node: n, stream: stream{name: "test", space: "test", stock: s.Stock, strict: s.Strict}})
		samples = append(samples, s.Samples[name])
	}
	return r, samples
}

// JudgeApplication returns the promises that an application found broken: one that got
// samples while the events took place.
func JudgeApplication(violations int64, events []Event, samples ...Sample) (broken []string) {
	r := &run{report: &Report{Ran: time.Minute, Events: events}, apps: []*application{{name: "app", samples: samples, violations: violations}}}
	r.judgeApplications(topologyDef{})
	return r.broken()
}

// JudgeSplit does so for a split brain in which so many numbers were reserved.
func JudgeSplit(former, new int64) (broken []string) {
	r := &run{report: &Report{}, cluster: &cluster{splits: []split{{former, new}}}}
	r.judgeSplits()
	return r.broken()
}

// JudgeIdle does so for a health check that had no answer in time, on a machine that lost so much of a minute.
func JudgeIdle(late string, lost time.Duration) (broken []string) {
	r := &run{report: &Report{Ran: time.Minute, Machine: echo.Machine{Lost: lost}}, cluster: &cluster{late: []string{late}}}
	r.judgeIdle()
	return r.broken()
}

func (r *run) broken() (texts []string) {
	for _, c := range r.report.Checks {
		if !c.Kept {
			texts = append(texts, c.Text)
		}
	}
	return texts
}
