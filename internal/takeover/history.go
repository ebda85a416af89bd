package takeover

import (
	"encoding/json"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
)

// Issued returns the numbers that a tag can have handed out: its row moves through them, and the
// audit log says where it began and where a command moved it on. entries are those of the tag,
// the newest first, and maxID is where its row is now.
//
// known is false if the beginning is in no entry: the row is older than the log, or was made by
// another program.
func Issued(entries []audit.Entry, maxID int64) (issued []leaf.Range, known bool) {
	var begin int64
	for _, e := range slices.Backward(entries) {
		if e.Result != audit.Done {
			continue
		}
		from, to := numbersOf(e.From), numbersOf(e.To)
		next := to.MaxID
		switch e.Operation {
		case "tag create":
			if to.Start == nil {
				return nil, false
			}
			begin, known = *to.Start, true
			continue
		case "tag set": // of other fields
			if next == nil {
				continue
			}
		case "tag repair":
			next = to.First
		case "tag delete":
			next = from.MaxID // until the next entry, which creates the tag again
		default:
			continue
		}
		if !known || from.MaxID == nil || next == nil {
			return nil, false
		}
		issued = leaf.AppendRange(issued, leaf.Range{Lo: begin, Hi: *from.MaxID})
		begin = *next
	}
	if !known {
		return nil, false
	}
	return leaf.AppendRange(issued, leaf.Range{Lo: begin, Hi: maxID}), true
}

// Held reports whether a command has moved the row on, and none has repaired the tag since: nodes may
// still issue what they hold from below. entries are those of the tag, the newest first.
func Held(entries []audit.Entry) bool {
	for _, e := range entries {
		switch {
		case e.Result != audit.Done:
		case e.Operation == "tag set" && numbersOf(e.To).MaxID != nil:
			return true
		case e.Operation == "tag repair", e.Operation == "tag create":
			return false
		}
	}
	return false
}

// numbers are the numbers in an entry that a row moves by.
type numbers struct {
	Start *int64 `json:"start,string"`
	MaxID *int64 `json:"max_id,string"`
	First *int64 `json:"first,string"`
}

// numbersOf returns none of a text that was cut because it is too long.
func numbersOf(text string) (n numbers) {
	if text == "" || json.Unmarshal([]byte(text), &n) != nil {
		return numbers{}
	}
	return n
}
