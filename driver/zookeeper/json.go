package zookeeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/leaf-idgen/leaf/worker"
)

// format is the version of our own records. A program that finds a higher one must
// not guess.
const format = 1

// endpoint is the data of a child of forever, with the fields of the Java server in
// its order. It refuses every other field.
type endpoint struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"`
}

// maxMoment is far beyond every layout, and leaves room for sums.
const maxMoment = math.MaxInt64 / 4

// parseTimestamp returns T of a child of forever. Other fields do not matter.
func parseTimestamp(p string, data []byte) (int64, error) {
	var found struct {
		Timestamp *int64 `json:"timestamp"`
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return 0, unreadable(p, data, err)
	}
	if found.Timestamp == nil || *found.Timestamp < 0 || *found.Timestamp > maxMoment {
		return 0, unreadable(p, data, fmt.Errorf("no timestamp of 0 to %d", int64(maxMoment)))
	}
	return *found.Timestamp, nil
}

// ownerRecord is the data of a node of leaf_owner.
type ownerRecord struct {
	Format int    `json:"format"`
	Nonce  string `json:"nonce"` // "": an operator took it away

	// Claimed says that Nonce has its number. Else it is on its way to one, and the
	// rest is what the last owner left.
	Claimed bool `json:"claimed"`

	// Creating is written together with a new child. Until the child is ours by the
	// fields below, one that was never written again is what a crash left.
	Creating bool `json:"creating,omitempty"`

	// Which child of forever, and its state after our last write: if it is another,
	// another process has written it.
	Node        string `json:"node,omitempty"`
	NodeVersion int32  `json:"node_version"`
	NodeCzxid   int64  `json:"node_czxid"`

	Number   int64 `json:"number"`
	Floor    int64 `json:"floor"`
	Bound    int64 `json:"bound"` // T, the timestamp that we wrote last
	Released bool  `json:"released"`
}

// namespaceRecord is the data of a namespace.
type namespaceRecord struct {
	Format      int    `json:"format"`
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	IssueFrom   int64  `json:"issue_from"`
	Incarnation string `json:"incarnation"` // random; the name of a node below

	// Forgotten is how many of the numbers that were given have lost their record. The
	// node named by Incarnation counts those that were given: it is set once for each.
	Forgotten int64 `json:"forgotten,omitempty"`

	// Forever is the czxid of the node whose children are numbered, if there is one:
	// another forever counts from 0 again.
	Forever int64 `json:"forever,omitempty"`
}

// presenceRecord is the data of an ephemeral node.
type presenceRecord struct {
	Format    int    `json:"format"`
	Announced bool   `json:"announced"` // else it only holds the place of a claim
	Address   string `json:"address"`
	Clock     string `json:"clock"`
	Nonce     string `json:"nonce"`
	Number    int64  `json:"number"`
}

// claimRecord is the data of a claim of the pool, boundRecord that of its T.
type claimRecord struct {
	Format   int    `json:"format"`
	Address  string `json:"address"`
	Nonce    string `json:"nonce"`
	Floor    int64  `json:"floor"`
	Released bool   `json:"released"`
}

type boundRecord struct {
	Format int    `json:"format"`
	Bound  *int64 `json:"bound"` // nil: missing, which is not 0
}

// parseBound returns T of a number of the pool.
func parseBound(p string, data []byte) (int64, error) {
	var r boundRecord
	if err := decode(p, data, &r); err != nil {
		return 0, err
	}
	if r.Bound == nil || *r.Bound < 0 || *r.Bound > maxMoment {
		return 0, unreadable(p, data, fmt.Errorf("no bound of 0 to %d", int64(maxMoment)))
	}
	return *r.Bound, nil
}

// fenceRecord is the data of the fence's namespace, entryRecord that of an entry.
type fenceRecord struct {
	Format      int    `json:"format"`
	Incarnation string `json:"incarnation"`
}

type entryRecord struct {
	Format int    `json:"format"`
	End    *int64 `json:"end"` // nil: missing, which is not 0
}

// encode is for the records of this file, which cannot fail.
func encode(record any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(record); err != nil {
		panic(fmt.Sprintf("zookeeper: encode %T: %v", record, err))
	}
	return bytes.TrimSpace(b.Bytes())
}

// decode reads a record of ours. It overlooks fields that it does not know, which may
// be added as long as an older program may overlook them. What changes the meaning of
// the others raises the format, and another format is refused.
func decode(p string, data []byte, record any) error {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return unreadable(p, data, err)
	}
	if head.Format != format {
		return unreadable(p, data, fmt.Errorf("format %d, this program knows %d", head.Format, format))
	}
	if err := json.Unmarshal(data, record); err != nil {
		return unreadable(p, data, err)
	}
	return nil
}

// unreadable returns worker.ErrForeign.
func unreadable(p string, data []byte, why error) error {
	const enough = 80
	return fmt.Errorf("%w: node %s cannot be read: %w: %.*q", worker.ErrForeign, p, why, enough, data)
}
