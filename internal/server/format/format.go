package format

import (
	"fmt"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/opaque"
)

// Format writes the IDs of one request. nil writes numbers.
type Format struct {
	name string
	by   writer                 // nil until find has been called
	find func() (writer, error) // of a tag that the node knows once it has issued an ID; nil: by is there
}

// writer is how a Format writes.
type writer interface {
	fits(r leaf.Range) bool // it can write these IDs, of which there is one or more
	what() string           // names it, and says which IDs it can write
	append(dst []byte, id int64) ([]byte, error)
}

// Check returns leaf.ErrBadRequest if f cannot write one of the IDs. They are then lost.
func (f *Format) Check(ranges ...leaf.Range) error {
	if f == nil {
		return nil
	}
	if f.find != nil {
		by, err := f.find()
		if err != nil {
			return fmt.Errorf("%w; the IDs of this request are lost", err)
		}
		f.by, f.find = by, nil
	}
	for _, r := range ranges {
		if r.Len() > 0 && !f.by.fits(r) {
			return leaf.BadField("format", f.name, fmt.Sprintf("%s, and the next IDs are %v; the IDs of this request are lost", f.by.what(), r))
		}
	}
	return nil
}

// Append appends the text of an ID, which Check has seen, to dst.
func (f *Format) Append(dst []byte, id int64) []byte {
	if f == nil {
		return strconv.AppendInt(dst, id, 10)
	}
	dst, err := f.by.append(dst, id)
	if err != nil {
		panic(err) // Check was not called
	}
	return dst
}

// Length returns how many bytes Append writes for all IDs of r, which Check has seen.
func (f *Format) Length(r leaf.Range) (n int) {
	text := make([]byte, 0, 64)
	for id := r.Lo; id < r.Hi; {
		text = f.Append(text[:0], id)
		next := id + 1
		if f == nil {
			next = sameLength(text, id, r.Hi)
		}
		n += len(text) * int(next-id)
		id = next
	}
	return n
}

// sameLength returns the first number above id that has another length than id, whose text is given, or hi if that is less.
func sameLength(text []byte, id, hi int64) int64 {
	const longest = 19 // digits of an int64
	switch {
	case id < 0:
		return id + 1
	case len(text) == longest:
		return hi
	}
	next := int64(1)
	for range text {
		next *= 10
	}
	return min(next, hi)
}

// opaqueWriter writes opaque IDs.
type opaqueWriter struct {
	text        opaque.Text
	most        int64
	permutation *opaque.Permutation
}

func (w *opaqueWriter) fits(r leaf.Range) bool { return r.Lo >= 0 && r.Hi-1 <= w.most }

func (w *opaqueWriter) what() string {
	return fmt.Sprintf("this node's keys (%s) encode IDs from 0 to %d", KeysKey, w.most)
}

func (w *opaqueWriter) append(dst []byte, id int64) ([]byte, error) {
	encoded, err := w.permutation.Encode(id)
	if err != nil {
		return dst, err
	}
	return w.text.Append(dst, encoded), nil
}

// Texts returns the texts of the IDs in ranges, which Check has seen.
func (f *Format) Texts(ranges []leaf.Range) []string {
	var ends []int
	var all []byte // one allocation for all texts: a full batch has 100,000
	for id := range leaf.IDs(ranges) {
		all = f.Append(all, id)
		ends = append(ends, len(all))
	}
	texts := make([]string, len(ends))
	whole, begin := string(all), 0
	for i, end := range ends {
		texts[i], begin = whole[begin:end], end
	}
	return texts
}
