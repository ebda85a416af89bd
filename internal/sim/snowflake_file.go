package sim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/leaf-idgen/leaf/internal/sim/world"
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
	_, rest, ok := bytes.Cut(content, []byte(`"nonce":"`))
	if !ok {
		return r, false
	}
	nonce, _, ok := bytes.Cut(rest, []byte{'"'})
	r = workerRecord{field(content, `"number":`), string(nonce), field(rest, `"inner":`), field(rest, `"bound":`)}
	return r, ok && r.number >= 0 && r.inner >= 0 && r.bound >= 0
}

// asked reads the nonces of the claims that were begun since the one of the file.
func asked(content []byte) (nonces []string) {
	_, rest, ok := bytes.Cut(content, []byte(`"asked":[`))
	list, _, ends := bytes.Cut(rest, []byte{']'})
	if !ok || !ends {
		return nil
	}
	for nonce := range strings.SplitSeq(string(list), ",") {
		nonces = append(nonces, strings.Trim(nonce, `"`))
	}
	return nonces
}

// field returns the number behind key, -1 if there is none.
func field(content []byte, key string) (n int64) {
	i := bytes.Index(content, []byte(key))
	if i < 0 {
		return -1
	}
	for _, c := range content[i+len(key):] {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
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
	d.e.mode.read(d.e, content)
	d.e.named = bytes.Contains(content, []byte(`"`+d.e.nonces()))
	return content, err
}

// nonces is how the nonces of e's process begin: see nonce.
func (e *holder) nonces() string { return fmt.Sprintf("%s/%d/", e.node.Name, e.life) }

// Replace implements worker.Disk.
func (d *notedDisk) Replace(name string, content []byte) error {
	c := d.e.node
	c.files.tried = append(c.files.tried, content)
	err := d.DiskHandle.Replace(name, content)
	r, ok := readRecord(content)
	if !ok {
		d.e.mode.w.Failf("%s writes a file without number or bound: %s", c.Name, content)
	}
	foreign := !strings.HasPrefix(r.nonce, d.e.nonces())
	naming := foreign && !d.e.named // the nonce of the claim that follows; the file stays as it is otherwise
	if foreign && !naming {
		d.e.resumed = r.nonce
		if d.e.believes != nil {
			d.e.believes()
			d.e.believes = nil
		}
	}
	if err == nil {
		c.inner[r.number] = r.inner
		c.files.written, c.files.tried = content, c.files.tried[:0]
		if d.e.named = true; !naming {
			c.stale, d.e.believes = nil, nil
		}
	}
	return err
}

// fileMemory is what a node's file may be, if no fault changed it.
type fileMemory struct {
	written []byte   // the last one that was written for certain
	tried   [][]byte // later ones, which may or may not be on disk
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
