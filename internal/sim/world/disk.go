package world

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/segment/fence"
	"github.com/leaf-idgen/leaf/worker"
)

// The kinds of faults of disks.
const (
	DiskFull      Kind = "disk full"
	DiskRefuses   Kind = "disk write failed without effect"
	DiskLies      Kind = "disk error after the effect"
	DiskSlow      Kind = "disk slow"
	UnsyncedLost  Kind = "unsynced bytes lost at a crash"
	UnsyncedTorn  Kind = "unsynced bytes torn at a crash"
	RenameUndone  Kind = "file replaced without a sync of its folder, undone by a crash"
	FileTorn      Kind = "file torn"
	FileOlder     Kind = "file rolled back"
	FileVanished  Kind = "file deleted"
	DiskOlder     Kind = "disk rolled back"
	MachineCloned Kind = "machine cloned with its disk"
	DirectoryLost Kind = "data directory lost"
)

// Disk is a machine's disk. It outlives the processes; each of them uses it through a
// handle of its own ([Disk.For]).
//
// A file is what was synced and, behind that, what was appended since, which a crash
// may lose or tear ([Disk.Crash]). All contents that were ever durable are kept, so
// that a file or the whole disk can go back to an earlier one.
type Disk struct {
	Faults *Faults

	Identity string // of the data directory, which a copy of the disk has, too

	Full   bool          // writes fail, after some bytes perhaps
	Refuse float64       // chance per write or sync to fail without effect
	Lie    float64       // chance per write or sync to fail after its effect
	Slow   time.Duration // each call takes up to this long; default 1 ms

	FailedAt time.Duration // when a write or sync failed last, 0: never

	s     *sched.Scheduler
	files map[string]*inode
	kept  map[string]time.Duration // since when the folder records that a file was written
	past  []moment
}

// inode is one content of a file; Replace makes a new one. Its bytes only grow: a
// prefix that a caller holds never changes.
type inode struct {
	content []byte
	synced  int    // bytes that are durable
	before  *inode // what a crash may bring back, because the folder was not synced
}

// moment is a durable change: from then on the file had that content.
type moment struct {
	at      time.Duration
	file    string
	content []byte // nil: it was removed
}

var (
	_ fence.Disk  = (*DiskHandle)(nil)
	_ worker.Disk = (*DiskHandle)(nil)
)

// NewDisk returns an empty disk.
func NewDisk(s *sched.Scheduler, faults *Faults) *Disk {
	return &Disk{Faults: faults, s: s, files: map[string]*inode{}, kept: map[string]time.Duration{}}
}

// DiskHandle is a process's use of a disk. It does nothing once the process is dead:
// every method begins with a scheduling point of the process.
type DiskHandle struct {
	d *Disk
	p *sched.Process
}

// For returns the handle of a process.
func (d *Disk) For(p *sched.Process) *DiskHandle { return &DiskHandle{d, p} }

// begin is the way to the disk.
func (h *DiskHandle) begin() {
	h.p.MayDie()
	d := time.Millisecond
	if h.d.Slow > 0 {
		h.d.Faults.Hit(DiskSlow)
		d = h.d.Slow
	}
	h.p.Sleep(time.Duration(h.d.s.Rand().Int64N(int64(d))))
}

// Occupy implements fence.Disk and worker.Disk. A process has one engine of each kind.
func (h *DiskHandle) Occupy(string) (func(), error) { return func() {}, nil }

// ReadFile implements fence.Disk and worker.Disk. It sees what was not synced, too.
func (h *DiskHandle) ReadFile(name string) ([]byte, error) {
	h.begin()
	f := h.d.files[name]
	if _, kept := h.d.kept[name]; f == nil && kept {
		return nil, fmt.Errorf("file %s is gone", name)
	}
	if f == nil {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return bytes.Clone(f.content), nil
}

// Replace implements fence.Disk and worker.Disk.
func (h *DiskHandle) Replace(name string, content []byte) error {
	h.begin()
	defer h.p.Boundary()
	if err := h.d.refuses("replace", name); err != nil {
		return err
	}
	f := &inode{content: bytes.Clone(content), synced: len(content)}
	if err := h.d.lies("replace", name); err != nil {
		if f.before = h.d.files[name]; f.before == nil {
			f.before = &inode{} // marks "there was none"
		}
		h.d.files[name] = f
		return err
	}
	h.d.files[name] = f
	h.d.remember(name, f.content)
	if _, kept := h.d.kept[name]; !kept && strings.HasPrefix(name, "fence") { // as driver/datadir keeps them
		h.d.kept[name] = h.d.s.Elapsed()
	}
	return nil
}

// Append implements fence.Disk.
func (h *DiskHandle) Append(name string) (fence.AppendFile, error) {
	h.begin()
	f := h.d.files[name]
	if f == nil {
		return nil, fmt.Errorf("append to %s: %w", name, fs.ErrNotExist)
	}
	return &appendFile{h, name, f}, nil
}

// appendFile is an open file. It stays the same file when the name gets another one.
type appendFile struct {
	h    *DiskHandle
	name string
	f    *inode
}

func (a *appendFile) Write(b []byte) (int, error) {
	a.h.begin()
	defer a.h.p.Boundary()
	d := a.h.d
	if err := d.refuses("append to", a.name); err != nil {
		n := d.s.Rand().IntN(len(b) + 1)
		a.f.content = append(a.f.content, b[:n]...)
		return n, err
	}
	a.f.content = append(a.f.content, b...)
	return len(b), d.lies("append to", a.name)
}

func (a *appendFile) Sync() error {
	a.h.begin()
	defer a.h.p.Boundary()
	d := a.h.d
	if err := d.refuses("sync", a.name); err != nil {
		return err
	}
	a.f.synced = len(a.f.content)
	if d.files[a.name] == a.f {
		d.remember(a.name, a.f.content)
	}
	return d.lies("sync", a.name)
}

func (a *appendFile) Close() error {
	a.h.begin()
	return nil
}

func (d *Disk) remember(name string, content []byte) {
	d.past = append(d.past, moment{d.s.Elapsed(), name, slices.Clip(content)})
}

func (d *Disk) refuses(what, name string) error {
	if d.Full {
		d.FailedAt = d.s.Elapsed()
		d.Faults.Hit(DiskFull)
		return fmt.Errorf("%s %s: %w", what, name, syscall.ENOSPC)
	}
	if draw(d.s.Rand(), d.Refuse) {
		d.FailedAt = d.s.Elapsed()
		d.Faults.Hit(DiskRefuses)
		return fmt.Errorf("%s %s: %w", what, name, syscall.EIO)
	}
	return nil
}

func (d *Disk) lies(what, name string) error {
	if draw(d.s.Rand(), d.Lie) {
		d.FailedAt = d.s.Elapsed()
		d.Faults.Hit(DiskLies)
		return fmt.Errorf("%s %s: done, and yet: %w", what, name, syscall.EIO)
	}
	return nil
}

// Names returns the names of all files, sorted.
func (d *Disk) Names() []string { return slices.Sorted(maps.Keys(d.files)) }

// Content returns what a process would read of a file, nil if there is none.
func (d *Disk) Content(name string) []byte {
	if f := d.files[name]; f != nil {
		return f.content
	}
	return nil
}

// Durable returns what no crash takes away of a file, nil if that may be nothing.
func (d *Disk) Durable(name string) []byte {
	f := d.files[name]
	for f != nil && f.before != nil {
		f = f.before
	}
	if f == nil {
		return nil
	}
	return f.content[:f.synced]
}

// Put sets a file, as an operator does.
func (d *Disk) Put(name string, content []byte) {
	content = bytes.Clone(content)
	d.files[name] = &inode{content: content, synced: len(content)}
	d.remember(name, content)
}

// Remove deletes a file, as an operator does who moves it away.
func (d *Disk) Remove(name string) {
	if d.files[name] != nil {
		delete(d.files, name)
		d.past = append(d.past, moment{d.s.Elapsed(), name, nil})
	}
}

// Vanish deletes a file, as a mistaken command does, and reports whether there was one.
func (d *Disk) Vanish(name string) bool {
	if d.files[name] == nil {
		return false
	}
	d.Faults.Hit(FileVanished)
	d.Remove(name)
	return true
}

// Crash is the machine's loss of power: of what was not synced, a part is left at most,
// and zeros may stand where the rest would be. No process may use the disk then.
func (d *Disk) Crash() {
	rng := d.s.Rand()
	for _, name := range d.Names() {
		f := d.files[name]
		if f.before != nil && rng.IntN(2) == 0 {
			d.Faults.Hit(RenameUndone)
			if f = f.before; f.content == nil {
				delete(d.files, name)
				continue
			}
		}
		tail := len(f.content) - f.synced
		if tail > 0 {
			keep := []int{0, rng.IntN(tail + 1), tail}[rng.IntN(3)]
			if keep < tail {
				d.Faults.Hit(UnsyncedLost)
			}
			content := bytes.Clone(f.content[:f.synced+keep])
			if keep > 0 && keep < tail {
				d.Faults.Hit(UnsyncedTorn)
				if rng.IntN(2) == 0 {
					content = append(content, make([]byte, tail-keep)...)
				}
			}
			f = &inode{content: content}
		}
		if f != d.files[name] || f.before != nil {
			d.files[name] = &inode{content: f.content, synced: len(f.content)}
			d.remember(name, f.content)
		}
	}
}

// Tear spoils a byte of a file, or cuts its end off. It reports whether there was
// anything to spoil.
func (d *Disk) Tear(name string) bool {
	f := d.files[name]
	if f == nil || len(f.content) == 0 {
		return false
	}
	rng := d.s.Rand()
	at := rng.IntN(len(f.content))
	content := bytes.Clone(f.content)
	if rng.IntN(2) == 0 {
		content[at] ^= byte(1 + rng.IntN(255))
	} else {
		content = content[:at]
	}
	d.Faults.Hit(FileTorn)
	d.Put(name, content)
	return true
}

// RollBack takes a file back to what it was at an earlier moment, and reports whether
// that was something else.
func (d *Disk) RollBack(name string, to time.Duration) bool {
	if !d.back(name, to) {
		return false
	}
	d.Faults.Hit(FileOlder)
	return true
}

// RollBackAll is RollBack of all files, as a restored image of the machine is.
func (d *Disk) RollBackAll(to time.Duration) bool {
	changed := false
	for _, name := range d.Names() {
		changed = d.back(name, to) || changed
	}
	maps.DeleteFunc(d.kept, func(_ string, since time.Duration) bool { return since > to })
	if changed {
		d.Faults.Hit(DiskOlder)
	}
	return changed
}

func (d *Disk) back(name string, to time.Duration) bool {
	f := d.files[name]
	if f == nil {
		return false
	}
	var then []byte
	for _, m := range d.past {
		if m.at > to {
			break
		}
		if m.file == name {
			then = m.content
		}
	}
	switch {
	case then == nil:
		d.Remove(name)
		return true
	case bytes.Equal(then, f.content):
		return false
	}
	d.Put(name, then)
	return true
}

// Lose takes all files away for good. What is written from now on is a data directory with another identity.
func (d *Disk) Lose(next string) {
	d.Faults.Hit(DirectoryLost)
	d.Identity, d.files, d.kept, d.past = next, map[string]*inode{}, map[string]time.Duration{}, nil
}

// Clone returns a copy as of now: what was not synced is in it, as a snapshot of a
// running machine's disk may have it.
func (d *Disk) Clone() *Disk {
	c := NewDisk(d.s, d.Faults)
	c.Identity = d.Identity
	for _, name := range d.Names() {
		c.Put(name, d.files[name].content)
	}
	c.kept = maps.Clone(d.kept)
	return c
}
