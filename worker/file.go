package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// fileName is the node's own record in its data directory.
const fileName = "worker.json"

// file is what a node remembers of its claim, so that it need not wait for T after
// a restart. The registry's T is never below Bound, unless a release lowered both, in
// this order: file, registry.
type file struct {
	Format      int    `json:"format"`
	Node        string `json:"node"`
	Namespace   string `json:"namespace"`
	Fingerprint string `json:"fingerprint"`
	Registry    string `json:"registry"`
	Place       string `json:"place,omitempty"`
	Servers     string `json:"servers,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
	Address     string `json:"address"`
	Number      int64  `json:"number"`
	Nonce       string `json:"nonce"`
	Inner       int64  `json:"inner"` // t: nothing at or above it was issued
	Bound       int64  `json:"bound"` // T as far as this node knows

	// Asked are the nonces that the registry may have recorded in place of Nonce, because the file
	// does not know of an answer to the claims with them. The latest is the last one.
	Asked []string `json:"asked,omitempty"`
}

// mostAsked is how many of them the file keeps: one a restart while the registry does not answer.
const mostAsked = 16

const fileFormat = 1

var (
	errFile = errors.New("worker: the node's own file")               // it cannot be used; the text says why
	errDisk = errors.New("worker: the node's file cannot be written") // nothing new may be issued

	errLayout = fmt.Errorf("%w", errFile) // it is of another layout
)

// encode returns the content: the object on one line, its checksum on the next.
func (f file) encode() ([]byte, error) {
	f.Format = fileFormat
	line, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(line, "\ncrc32c %08x\n", checksum(line)), nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// decodeFile returns the file, or errFile if one byte is missing or wrong.
func decodeFile(content []byte) (file, error) {
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	if want := fmt.Sprintf("crc32c %08x\n", checksum(line)); string(rest) != want {
		return file{}, fmt.Errorf("%w %s is damaged: its checksum is wrong", errFile, fileName)
	}
	var f file
	if err := json.Unmarshal(line, &f); err != nil {
		return file{}, fmt.Errorf("%w %s is damaged: %w", errFile, fileName, err)
	}
	switch {
	case f.Format != fileFormat:
		return file{}, fmt.Errorf("%w %s has format %d, this program knows %d", errFile, fileName, f.Format, fileFormat)
	case f.Number < 0 || f.Nonce == "" || f.Inner > f.Bound:
		return file{}, fmt.Errorf("%w %s contradicts itself: number=%d nonce=%q inner=%d bound=%d", errFile, fileName, f.Number, f.Nonce, f.Inner, f.Bound)
	}
	return f, nil
}

// admit returns errFile if the file was not written by this node with this layout. The
// layout comes first, because nothing else remembers that of a static number.
func (f file) admit(node string, ns Namespace) error {
	for _, d := range []struct {
		err              error
		field, got, want string
	}{
		{errLayout, "layout", f.Fingerprint, ns.Fingerprint},
		{errFile, "node", f.Node, node},
		{errFile, "namespace", f.Namespace, ns.Name},
	} {
		if d.got != d.want {
			return fmt.Errorf("%w %s is of another %s: %q, this one is %q", d.err, fileName, d.field, d.got, d.want)
		}
	}
	return nil
}

// of reports whether the file stems from the registry that info describes, as far as can
// be told while that does not answer: another path, or other servers altogether, may have
// given the number to another node.
func (f file) of(info Info) bool {
	same := func(server string) bool { return slices.Contains(strings.Split(f.Servers, ","), server) }
	return f.Registry == info.Name && f.Place == info.Place && slices.ContainsFunc(strings.Split(info.Servers, ","), same)
}

// previous is the claim of the file, nil if there is none.
func (f *file) previous() *Previous {
	if f == nil {
		return nil
	}
	return &Previous{Number: f.Number, Nonce: f.Nonce, Asked: f.Asked, Inner: f.Inner, Bound: f.Bound, Incarnation: f.Incarnation}
}

// readFile returns the node's file, nil if there is none, or errFile.
func (h *Holder) readFile() (*file, error) {
	content, err := h.load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", fileName, err)
	}
	f, err := decodeFile(content)
	if err == nil {
		err = f.admit(h.cfg.NodeID, h.namespace)
	}
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// writeFile makes what the node knows durable. It returns soon after ctx ends, also if
// the disk hangs; what the disk will hold is then unknown.
func (h *Holder) writeFile(ctx context.Context, r Record, asked []string, inner, bound int64) error {
	h.unwritten = nil
	err := h.store(ctx, file{
		Node: h.cfg.NodeID, Namespace: h.namespace.Name, Fingerprint: h.namespace.Fingerprint,
		Registry: h.info.Name, Place: h.info.Place, Servers: h.info.Servers, Incarnation: r.Incarnation,
		Address: r.Address, Number: r.Number, Nonce: r.Nonce, Inner: inner, Bound: bound, Asked: asked,
	})
	if err != nil {
		h.unwritten = &written{r, asked, inner, bound}
	}
	return err
}

// store writes the file, and raises or ends the alarm of the disk.
func (h *Holder) store(ctx context.Context, f file) error {
	content, err := f.encode()
	if err != nil {
		return err
	}
	if err := h.replace(ctx, content); err != nil {
		if ctx.Err() == nil || !h.isClosing() { // else the stop has interrupted it, and lastWrite waits for its end
			h.diskAlarm(fmt.Sprintf("the worker's file cannot be written: %v", err))
		}
		return fmt.Errorf("%w: %s: %w", errDisk, fileName, err)
	}
	h.cfg.Alarms.Clear(leaf.AlarmDisk, fileName)
	return nil
}

// name puts the nonce of the next claim into the node's file, of which all else stays. A
// process that ends between the registry's answer and its own first write thus leaves a file
// by which the next process proves that the number is its own.
func (h *Holder) name(f *file, nonce string) error {
	if f == nil || !f.of(h.info) {
		return nil
	}
	named := len(f.Asked) > 0 && f.Asked[len(f.Asked)-1] == nonce
	if named && h.named == nonce {
		return nil
	}
	if !named { // else a write has taken effect and reported an error: it may not be durable
		f.Asked = slices.Concat(f.Asked[max(0, len(f.Asked)-mostAsked+1):], []string{nonce})
	}
	if err := h.store(h.base, *f); err != nil {
		return err
	}
	h.named = nonce
	return nil
}

// diskPatience is how long a read or a write may take without an alarm. The write before it
// ended at most Ahead/3 earlier.
const diskPatience = time.Second

// replace is Disk.Replace with a deadline. A write that hangs may still reach the disk
// later, so the next one waits for its end.
func (h *Holder) replace(ctx context.Context, content []byte) error {
	if err := h.flush(ctx); err != nil {
		return err
	}
	if h.disk == (noDisk{}) {
		return nil
	}
	done := make(chan struct{})
	h.writing = done
	var err error
	h.rt.Go(func() {
		defer close(done)
		err = h.onDisk("Disk.Replace", func() error { return h.disk.Replace(fileName, content) })
	})
	if hangs := h.flush(ctx); hangs != nil {
		return hangs
	}
	return err
}

// load is Disk.ReadFile until Close begins, with the alarm of a disk that hangs.
func (h *Holder) load() ([]byte, error) {
	if h.disk == (noDisk{}) {
		return h.disk.ReadFile(fileName)
	}
	done := make(chan struct{})
	var content []byte // both are read only after done is closed
	var err error
	h.rt.Go(func() {
		defer close(done)
		err = h.onDisk("Disk.ReadFile", func() (err error) { content, err = h.disk.ReadFile(fileName); return err })
	})
	if hangs := h.answer(h.base, done, "read"); hangs != nil {
		return nil, hangs
	}
	if h.unwritten == nil {
		h.cfg.Alarms.Clear(leaf.AlarmDisk, fileName)
	}
	return content, err
}

// onDisk is a call of the disk. A panic of that is an error.
func (h *Holder) onDisk(call string, f func() error) error {
	_, err := bounded.Recover(call, func() (struct{}, error) { return struct{}{}, f() })
	return h.reg.heed(err)
}

// flush waits for the end of the last write.
func (h *Holder) flush(ctx context.Context) error {
	if h.writing == nil {
		return nil
	}
	return h.answer(ctx, h.writing, "write")
}

// answer waits for the end of a call of the disk, and raises the alarm when that takes long.
func (h *Holder) answer(ctx context.Context, ended <-chan struct{}, call string) error {
	start := h.rt.Now()
	for patience := diskPatience; ; patience = 0 {
		err := h.rt.Wait(ctx, ended, patience)
		select {
		case <-ended:
			return nil
		default:
		}
		if err != nil {
			return fmt.Errorf("the disk does not answer: %w", err)
		}
		h.diskAlarm(fmt.Sprintf("the disk has not answered to a %s of the worker's file for %v", call, h.rt.Now().Sub(start).Round(time.Millisecond)))
	}
}

// lastWrite waits until no write is under way, once nothing else writes. One that still hangs
// when ctx ends could replace the file of the next process, if that got the data directory.
func (h *Holder) lastWrite(ctx context.Context) error {
	if err := h.flush(ctx); err != nil {
		return fmt.Errorf("worker: a write of %s has not ended, so the data directory must stay locked until this process ends: %w", fileName, err)
	}
	return nil
}

func (h *Holder) diskAlarm(text string) {
	h.cfg.Alarms.Raise(leaf.Alarm{
		Code: leaf.AlarmDisk, Subject: fileName, Text: text,
		Do: "make the data directory writable; IDs end with the bound that is on the disk",
	})
}

// written is what writeFile was called with.
type written struct {
	Record

	asked        []string
	inner, bound int64
}

// rewrite tries again what failed, if anything did: the alarm must not outlast the trouble of
// the disk, and what a number needs after a stop or a loss must get there.
func (h *Holder) rewrite(ctx context.Context) error {
	w := h.unwritten
	if w == nil {
		return nil
	}
	return h.writeFile(ctx, w.Record, w.asked, w.inner, w.bound)
}
