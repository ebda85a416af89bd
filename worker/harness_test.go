package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// world is a registry and the nodes around it, in a synctest bubble. Its methods that
// change faults may be called while nodes run.
type world struct {
	t       *testing.T
	records *records
	kind    worker.Kind

	mu    sync.Mutex
	taken map[int64]string // every ID ever issued, by whom
}

// run runs f in a bubble.
func run(t *testing.T, kind worker.Kind, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&world{t: t, kind: kind, records: newRecords(kind), taken: map[int64]string{}})
	})
}

// node is one process: its clock, disk and configuration.
type node struct {
	*worker.Holder

	w      *world
	name   string
	clock  *clock
	disk   *disk
	alarms *alarms
	cfg    worker.Config
	far    *island // if set, the way to the registry
}

// node makes a node that does not run yet. Its worker IDs are 0 to 3.
func (w *world) node(name string, change ...func(*worker.Config)) *node {
	n := &node{w: w, name: name, clock: newClock(), disk: &disk{files: map[string][]byte{}}, alarms: &alarms{active: map[string]leaf.Alarm{}}}
	n.cfg = worker.Config{
		Layout: snowflake.Leaf(), Namespace: "test", Address: name + ":8080", Numbers: leaf.Range{Lo: 0, Hi: 4},
		NodeID: name, Fresh: true, Alarms: n.alarms, Runtime: n.clock, Elapsed: n.clock.elapsed,
	}
	if w.kind == worker.Leased {
		n.cfg.Horizon = time.Minute // short enough to wait for
	}
	for _, c := range change {
		c(&n.cfg)
	}
	return n
}

// begin makes the node's next process and starts it.
func (n *node) begin() error {
	n.w.t.Helper()
	var way worker.Records = n.w.records
	if n.far != nil {
		way = n.far
	}
	h, err := worker.New(worker.NewPool(way), n.disk, n.cfg)
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.Holder = h
	n.w.t.Cleanup(func() { n.crash() })
	return h.Start(n.w.t.Context())
}

// up is begin for a node that must serve.
func (n *node) up() *node {
	n.w.t.Helper()
	if err := n.begin(); err != nil {
		n.w.t.Fatalf("%s: start: %v", n.name, err)
	}
	synctest.Wait()
	if n.Status().State == worker.Waiting {
		time.Sleep(5 * time.Millisecond) // the rest of the unit that the last process used
	}
	return n
}

// crash ends the process so that nothing of it reaches registry or disk any more.
func (n *node) crash() {
	if n.Holder == nil {
		return
	}
	h := n.Holder
	n.Holder = nil
	n.disk.set(func(d *disk) { d.dead = true })
	n.w.records.cut(n.name+":8080", true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = h.Close(ctx) // its release fails, as it would in a crash
	n.w.records.cut(n.name+":8080", false)
	n.disk.set(func(d *disk) { d.dead = false })
}

// stop is a clean stop.
func (n *node) stop() {
	n.w.t.Helper()
	h := n.Holder
	n.Holder = nil
	if err := h.Close(n.w.t.Context()); err != nil {
		n.w.t.Fatalf("%s: close: %v", n.name, err)
	}
}

// confirm says that the node's clock is right.
func (n *node) confirm() {
	n.w.t.Helper()
	if now, err := n.ConfirmClock(); err != nil {
		n.w.t.Fatalf("%s: confirm %v: %v", n.name, now, err)
	}
}

// issue takes count IDs that nobody has taken before and returns the last one's parts.
func (n *node) issue(count int) snowflake.Parts {
	n.w.t.Helper()
	var last snowflake.Parts
	for range count {
		id, err := n.Next(n.w.t.Context(), "key")
		if err != nil {
			n.w.t.Fatalf("%s: %v", n.name, err)
		}
		last = n.w.take(id, n.name)
	}
	return last
}

// refuses fails the test unless the next call fails with want.
func (n *node) refuses(want error) {
	n.w.t.Helper()
	n.says(want, "")
}

// says is refuses with a text that the error, or the cause that it hides, must contain.
func (n *node) says(want error, text string) {
	n.w.t.Helper()
	id, err := n.Next(n.w.t.Context(), "key")
	if err == nil {
		n.w.t.Fatalf("%s: issued %d, want %v", n.name, id, want)
	}
	if !errors.Is(err, want) {
		n.w.t.Fatalf("%s: error %v, want %v", n.name, err, want)
	}
	if all := fmt.Sprint(err, "; ", worker.Cause(err)); !strings.Contains(all, text) {
		n.w.t.Errorf("%s: error %s, want %s", n.name, all, text)
	}
}

func (w *world) take(id int64, by string) snowflake.Parts {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if other, ok := w.taken[id]; ok {
		w.t.Fatalf("ID %d of %s was issued before by %s", id, by, other)
	}
	w.taken[id] = by
	p, err := snowflake.Leaf().Decode(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// millis is the start of the ID's unit in Unix milliseconds.
func millis(p snowflake.Parts) int64 { return snowflake.Leaf().Millis(p.Unit) }

// clock is a wall clock that can be moved; timers and elapsed time are the bubble's.
type clock struct {
	leaf.Runtime

	start  time.Time
	mu     sync.Mutex
	offset time.Duration
	asleep time.Duration // time that no timer of the machine has seen
	stands time.Time     // the wall clock stands there; zero: it goes
}

func newClock() *clock { return &clock{Runtime: leaf.SystemRuntime(), start: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stands.IsZero() {
		return c.stands
	}
	// The bubble starts in the year 2000, before the epoch of the layouts.
	return time.Now().Round(0).AddDate(24, 0, 0).Add(c.offset)
}

func (c *clock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.start) + c.asleep
}

// suspend is a machine that slept: both clocks go on, no timer does.
func (c *clock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	c.asleep += d
}

// stand makes the wall clock stand still, goOn makes it go on from there.
func (c *clock) stand() {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands = now
}

func (c *clock) goOn() {
	c.mu.Lock()
	stood := c.stands
	c.stands = time.Time{}
	c.mu.Unlock()
	c.step(stood.Sub(c.Now()))
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// disk is a folder in memory that can fail.
type disk struct {
	mu    sync.Mutex
	files map[string][]byte
	dead  bool          // writes vanish with the process
	err   error         // writes fail
	late  error         // writes take effect and fail
	hang  chan struct{} // writes end when it is closed; nil: at once
	reads chan struct{} // the same for reads
	users int           // that have occupied the file and not left it
}

func (d *disk) set(f func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// content returns what the worker's own file holds now, nil when there is none, and put replaces
// it from outside. A node that runs writes in the background, so a test
// never touches the map itself.
func (d *disk) content() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.files[fileName])
}

func (d *disk) put(content []byte) {
	d.set(func(d *disk) { d.files[fileName] = content })
}

// Occupy counts, and lets everyone in: a test ends a process without closing its Holder.
func (d *disk) Occupy(string) (func(), error) {
	d.set(func(d *disk) { d.users++ })
	return func() { d.set(func(d *disk) { d.users-- }) }, nil
}

func (d *disk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	reads := d.reads
	d.mu.Unlock()
	if reads != nil {
		<-reads
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return content, nil
}

func (d *disk) Replace(name string, content []byte) error {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errors.New("the process is gone")
	}
	if d.err != nil {
		return d.err
	}
	d.files[name] = content
	return d.late
}

// alarms keeps the active ones.
type alarms struct {
	mu     sync.Mutex
	active map[string]leaf.Alarm
}

func (a *alarms) Raise(al leaf.Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[al.Code+" "+al.Subject] = al
}

func (a *alarms) Clear(code, subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, code+" "+subject)
}

// has returns the text of the active alarm with this code, "" if there is none.
func (a *alarms) has(code string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, al := range a.active {
		if al.Code == code {
			return al.Text
		}
	}
	return ""
}

// list returns the active ones.
func (a *alarms) list() []leaf.Alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.active))
}
