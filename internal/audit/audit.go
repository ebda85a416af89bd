package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// Entry is one administrative change.
type Entry struct {
	ID        string    `json:"id"` // see NewID
	Time      time.Time `json:"time"`
	Node      string    `json:"node"`           // ID of the node that carried it out; of a command, its host
	Who       string    `json:"who"`            // e.g. "token ci", "local user leaf"
	Address   string    `json:"address"`        // where the request came from
	Operation string    `json:"operation"`      // e.g. "tag set"
	Object    string    `json:"object"`         // what it was done to, e.g. "tag order"
	From      string    `json:"from,omitempty"` // JSON: what it replaced
	To        string    `json:"to,omitempty"`   // JSON: what was put in its place
	Result    string    `json:"result"`         // Done, or the error
}

// Done is the result of a change that was carried out.
const Done = "done"

// Longest texts, in characters.
const (
	MaxName  = 256  // of Node, Who, Address and Object
	MaxWords = 64   // of Operation
	MaxValue = 2048 // of From, To and Result
)

// Store keeps entries.
type Store interface {
	// Record adds an entry, and deletes entries that are older, by more than keep, than it and
	// than the time of the store: at least as many as it adds, as long as there are some.
	// Repeating it with the same entry changes nothing. Errors: segment.ErrSchema without a
	// place for it; leaf.ErrBadRequest for an entry that is not Fit.
	Record(ctx context.Context, e Entry, keep time.Duration) error

	// Entries returns the entries that q asks for, the newest first, and the Before of the next
	// page, "" at the end. A page can be shorter than Limit although another one follows.
	// Errors as of Record.
	Entries(ctx context.Context, q Query) (page []Entry, next string, err error)
}

// MaxPage is the largest page.
const MaxPage = 1000

// Query asks for a page of entries.
type Query struct {
	Before string    // only those before this ID; "": from the newest on
	Since  time.Time // only those from then on; zero: all
	Object string    // only those of this object; "": of all
	Who    string    // only those of this one; "": of all
	Limit  int       // 1 to MaxPage
}

// Validate returns leaf.ErrBadRequest if a field is outside its limits.
func (q Query) Validate() error {
	if q.Limit < 1 || q.Limit > MaxPage {
		return leaf.BadField("limit", q.Limit, fmt.Sprintf("must be 1 to %d", MaxPage))
	}
	if q.Before != "" {
		return checkID("before", q.Before)
	}
	return nil
}

// Has reports whether q asks for e, whatever the page.
func (q Query) Has(e Entry) bool {
	return (q.Object == "" || e.Object == q.Object) && (q.Who == "" || e.Who == q.Who) && e.ID >= Lowest(q.Since) && (q.Before == "" || e.ID < q.Before)
}

// NewID returns an ID for an entry of that moment. The IDs of entries, as bytes, have the
// order of their times, to the microsecond.
func NewID(at time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return Lowest(at) + "-" + hex.EncodeToString(random[:])
}

// Lowest returns a text that sorts before the ID of each entry made at that time or later, and after
// the ID of each entry made earlier.
func Lowest(at time.Time) string { return fmt.Sprintf("%016x", max(0, at.UnixMicro())) }

// Oldest returns a text that is above the IDs of the entries that are to go with a new one: those
// that are older than it by more than keep. now is the time of the store: one node whose clock is
// far ahead must not delete what the others have recorded.
func Oldest(e Entry, now time.Time, keep time.Duration) string {
	at := TimeOf(e.ID)
	if now.Before(at) {
		at = now
	}
	return Lowest(at.Add(-keep))
}

// TimeOf returns the moment of an ID.
func TimeOf(id string) time.Time {
	micros, err := strconv.ParseInt(id[:min(16, len(id))], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

const idLength = 16 + 1 + 8

func checkID(field, id string) error {
	if len(id) == idLength && !TimeOf(id).IsZero() && id[16] == '-' && !strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil
	}
	return leaf.BadField(field, id, "must be the ID of an entry")
}

// texts are the fields of an entry, with the most characters that each may have.
func (e *Entry) texts() []struct {
	field string
	text  *string
	most  int
} {
	return []struct {
		field string
		text  *string
		most  int
	}{
		{"node", &e.Node, MaxName},
		{"who", &e.Who, MaxName},
		{"address", &e.Address, MaxName},
		{"operation", &e.Operation, MaxWords},
		{"object", &e.Object, MaxName},
		{"from", &e.From, MaxValue},
		{"to", &e.To, MaxValue},
		{"result", &e.Result, MaxValue},
	}
}

// Fit returns the entry as every store can keep it: valid UTF-8 without control characters, cut
// where a text is too long.
func (e Entry) Fit() Entry {
	for _, t := range e.texts() {
		*t.text = fit(*t.text, t.most)
	}
	return e
}

func fit(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// Validate returns leaf.ErrBadRequest for an entry that no store keeps.
func (e Entry) Validate() error {
	for _, t := range e.texts() {
		if fit(*t.text, t.most) != *t.text {
			return leaf.BadField(t.field, *t.text, fmt.Sprintf("must be at most %d characters of UTF-8 without control characters", t.most))
		}
	}
	return checkID("id", e.ID)
}
