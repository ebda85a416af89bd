package sim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/leaf-idgen/leaf/sim/world"
)

// workerRecord is what this package reads of the engine's file.
type workerRecord struct {
	number       int64
	nonce        string
	inner, bound int64
}

// sound reports whether the file's checksum is right.
func sound(content []byte) bool {
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	return string(rest) == fmt.Sprintf("crc32c %08x\n", crc32.Checksum(line, crc32.MakeTable(crc32.Castagnoli)))
}

// readRecord reads the fields that it needs.
func readRecord(content []byte) (r workerRecord, ok bool) {
	text := field(content, `"nonce":"`, '"')
	number, err1 := strconv.ParseInt(field(content, `"number":`, ','), 10, 64)
	inner, err2 := strconv.ParseInt(field(content, `"inner":`, ','), 10, 64)
	bound := field(content, `"bound":`, ',')
	b, err3 := strconv.ParseInt(string(bytes.TrimRight([]byte(bound), "}")), 10, 64)
	return workerRecord{number, text, inner, b}, err1 == nil && err2 == nil && err3 == nil && text != ""
}

// field returns what stands between key and end, or the end of the line.
func field(content []byte, key string, end byte) string {
	_, rest, ok := bytes.Cut(content, []byte(key))
	if !ok {
		return ""
	}
	if i := bytes.IndexAny(rest, string(end)+"\n"); i >= 0 {
		rest = rest[:i]
	}
	return string(rest)
}

// notedDisk is the engine's disk. It notes which t is durable, and notices a file that
// is not the one which this node wrote.
type notedDisk struct {
	e *holder
	*world.DiskHandle
}

// ReadFile implements worker.Disk.
func (d *notedDisk) ReadFile(name string) ([]byte, error) {
	content, err := d.DiskHandle.ReadFile(name)
	if !d.e.looked { // the engine's first look at the clock follows
		d.e.looked, d.e.boot = true, d.e.proc.Offset()
	}
	d.e.mode.read(d.e, content)
	return content, err
}

// Replace implements worker.Disk.
func (d *notedDisk) Replace(name string, content []byte) error {
	c := d.e.node
	c.files.tried = append(c.files.tried, content)
	err := d.DiskHandle.Replace(name, content)
	r, ok := readRecord(content)
	if !ok {
		d.e.mode.w.Failf("%s writes a file without number or bound: %s", c.Name, content)
	}
	if err == nil {
		c.inner[r.number] = r.inner
		c.files.written, c.files.tried = content, c.files.tried[:0]
	}
	return err
}

// fileMemory is what a node's file may be, if nobody changed it behind its back.
type fileMemory struct {
	written []byte   // the last one that was written for certain
	tried   [][]byte // later ones, of which nobody knows
	nonces  map[string]bool
}

func (f *fileMemory) mayBe(content []byte) bool {
	if bytes.Equal(content, f.written) {
		return true
	}
	for _, t := range f.tried {
		if bytes.Equal(content, t) {
			return true
		}
	}
	return false
}
