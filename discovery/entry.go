package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// maxEntry bounds the text of an entry in bytes: several times the longest that this
// version writes, for fields to come.
const maxEntry = 4096

// Encode returns n as an entry of a directory: JSON. It must be valid.
func (n Node) Encode() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(n); err != nil {
		panic(fmt.Sprintf("discovery: a node cannot be written as JSON: %v", err))
	}
	return strings.TrimSpace(b.String())
}

// Parse reads an entry: one JSON object of a valid node and nothing after it, at most
// 4096 bytes. Fields that it does not know are left alone.
func Parse(text []byte) (Node, error) {
	var n Node
	if len(text) > maxEntry {
		return n, fmt.Errorf("discovery: an entry of %d bytes: the limit is %d", len(text), maxEntry)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&n); err != nil {
		return Node{}, fmt.Errorf("discovery: an entry that is no node: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Node{}, errors.New("discovery: an entry with something after its end")
	}
	if err := n.Validate(); err != nil {
		return Node{}, fmt.Errorf("discovery: an entry of a node that cannot be: %w", err)
	}
	return n, nil
}

// Entry is what a driver has read: the text that a key of its registry holds.
type Entry struct {
	Place string // for people, e.g. the path in the registry
	ID    string // of the node, as the key says it
	Text  []byte
}

// maxNamed bounds what a Reader remembers.
const maxNamed = 1000

// Reader makes nodes of entries, for drivers. It is safe for concurrent use.
type Reader struct {
	log *slog.Logger

	mu    sync.Mutex
	named map[string]string // place to text: garbage that is in the log already
}

// NewReader returns a Reader that names in log what it leaves out; nil: nowhere.
func NewReader(log *slog.Logger) *Reader {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Reader{log: log, named: map[string]string{}}
}

// Nodes returns the nodes of all entries that can be one, ordered by ID. Each of the
// others is named in the error log, once until its text changes.
func (r *Reader) Nodes(entries []Entry) []Node {
	nodes := make([]Node, 0, len(entries))
	for _, e := range entries {
		n, err := Parse(e.Text)
		if err == nil && n.ID != e.ID {
			err = fmt.Errorf("discovery: the entry of node %q under the ID %q", n.ID, e.ID)
		}
		if err != nil {
			r.name(e, err)
			continue
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes
}

func (r *Reader) name(e Entry, why error) {
	const enough = 200 // to recognise a text
	shown := string(e.Text[:min(len(e.Text), enough)])
	r.mu.Lock()
	known, found := r.named[e.Place]
	if !found && len(r.named) >= maxNamed {
		clear(r.named)
	}
	r.named[e.Place] = shown
	r.mu.Unlock()
	if !found || known != shown {
		r.log.Error("an entry of the directory of nodes is left out", "place", e.Place, "reason", why, "text", shown)
	}
}
