package format

import (
	"fmt"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/opaque"
)

// Format writes the IDs of one request. nil writes numbers.
type Format struct {
	name        string
	text        opaque.Text
	largest     int64 // ID that it can write
	permutation *opaque.Permutation
}

// Check returns leaf.ErrBadRequest if f cannot write one of the IDs. They are then lost.
func (f *Format) Check(ranges ...leaf.Range) error {
	if f == nil {
		return nil
	}
	for _, r := range ranges {
		if r.Len() > 0 && (r.Lo < 0 || r.Hi-1 > f.largest) {
			return leaf.BadField("format", f.name, fmt.Sprintf("this node's keys (%s) encode IDs from 0 to %d, and the next IDs are %v; the IDs of this request are lost", KeysKey, f.largest, r))
		}
	}
	return nil
}

// Append appends the text of an ID, which Check has seen, to dst.
func (f *Format) Append(dst []byte, id int64) []byte {
	if f == nil {
		return strconv.AppendInt(dst, id, 10)
	}
	encoded, err := f.permutation.Encode(id)
	if err != nil {
		panic(err) // Check was not called
	}
	return f.text.Append(dst, encoded)
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
