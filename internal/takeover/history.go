package takeover

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
)

// Issued returns the numbers that a tag can have handed out: its row moves through them, and the
// audit log says where it began and where a command moved it on. What a repair has ended counts,
// whatever the row said: nodes had issued above it. entries are those of the tag, the newest
// first, and maxID is where its row is now, -1 if it has none.
//
// known is false if no entry has the beginning: the row is older than the log, or another program made it.
// It is also false if the row is gone and no entry has its end: another program deleted it.
func Issued(entries []audit.Entry, maxID int64) (issued []leaf.Range, known bool) {
	var begin int64
	there := false // a row
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
			if there { // no entry says where the row before ended, but a new one begins behind
				issued = leaf.AppendRange(issued, leaf.Range{Lo: begin, Hi: *to.Start})
			}
			begin, known, there = *to.Start, true, true
			continue
		case "tag set": // of other fields
			if next == nil {
				continue
			}
		case "tag repair":
			next = to.First
		case "tag delete":
			next, there = from.MaxID, false // until the next entry, which creates the tag again
		default:
			continue
		}
		if !known || from.MaxID == nil || next == nil {
			return nil, false
		}
		end := *from.MaxID
		if after := to.after(); e.Operation == "tag repair" && after != nil {
			end = max(end, *after) // the row said too little: that is why the tag was repaired
		}
		issued = leaf.AppendRange(issued, leaf.Range{Lo: begin, Hi: end})
		begin = *next
	}
	if !known || there && maxID < 0 {
		return nil, false
	}
	return leaf.AppendRange(issued, leaf.Range{Lo: begin, Hi: maxID}), true
}

// Lowest returns a number below which no node issues anything of the tag any more, 0 if that is not
// known. entries are those of the tag, the newest first.
//
// A repair makes every node that it reached drop what it holds from below; its entry names those that it
// did not reach. No other command does: nodes issue what they hold from before it, also where the row was
// moved on, or deleted and made anew.
func Lowest(entries []audit.Entry) int64 {
	var lowest *int64
	older := false // a row of which no entry has said yet where it began
	for _, e := range entries {
		if e.Result != audit.Done {
			continue
		}
		repaired, to := e.Operation == "tag repair", numbersOf(e.To)
		switch {
		case repaired && to.Untold != "":
			continue
		case repaired, e.Operation == "tag create":
			older = false
		case e.Operation == "tag delete":
			older = true
			continue
		default:
			continue
		}
		first := to.Start
		if repaired {
			first = to.after()
		}
		if first == nil {
			return 0
		}
		if lowest == nil || *first < *lowest {
			lowest = first
		}
		if repaired {
			break
		}
	}
	if lowest == nil || older { // the log has let the entries of that row go
		return 0
	}
	return *lowest
}

// Deleted reports whether the tag has had a row. entries are those of the tag, which has none now.
func Deleted(entries []audit.Entry) bool {
	return slices.ContainsFunc(entries, func(e audit.Entry) bool {
		return e.Result == audit.Done && strings.HasPrefix(e.Operation, "tag ")
	})
}

// numbers are the numbers in an entry that a row moves by.
type numbers struct {
	Start *int64 `json:"start,string"`
	MaxID *int64 `json:"max_id,string"`
	First *int64 `json:"first,string"`
	Above *int64 `json:"above,string"`

	Untold string `json:"untold"` // nodes that a repair did not reach
}

// after returns the number behind what a repair has ended, nil if it is in no field.
func (n numbers) after() *int64 {
	if n.Above == nil {
		return n.First
	}
	after := *n.Above + 1
	return &after
}

// numbersOf returns none of a text that was cut because it is too long.
func numbersOf(text string) (n numbers) {
	if text == "" || json.Unmarshal([]byte(text), &n) != nil {
		return numbers{}
	}
	return n
}
