package format

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/opaque"
)

// The formats that have a name of their own; the others are opaque with a text of package opaque.
const (
	Number          = "number"
	Text            = "text"
	Opaque          = "opaque"
	OpaqueBase62    = "opaque-base62"
	OpaqueCrockford = "opaque-crockford"
)

// SnowflakeTag is the tag under which IDs of snowflake mode are encoded.
const SnowflakeTag = "snowflake"

// KeysKey is the configuration key that names the file of keys.
const KeysKey = "opaque.keys"

// Keys are what a node makes opaque IDs with. The zero value, and nil, have none. It is safe for
// concurrent use.
type Keys struct {
	issues atomic.Pointer[issuing]

	mu   sync.Mutex
	seen Seen
}

// issuing is the ring in force. It has only the key that encodes, because a node decodes nothing.
type issuing struct {
	ring *opaque.Ring
	held error // why it encodes nothing yet
}

// encodesAs reports whether both make the same opaque IDs.
func (i *issuing) encodesAs(ring *opaque.Ring) bool {
	return i.ring.Bits == ring.Bits && i.ring.VersionBits == ring.VersionBits && i.ring.Issue == ring.Issue && bytes.Equal(i.ring.Keys[i.ring.Issue], ring.Keys[ring.Issue])
}

// Recall adds what the node had before its start. Call it before Replace.
func (k *Keys) Recall(seen Seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = seen
}

// Held returns the ring in force, with only the key that encodes, and why the ring does not encode
// yet, nil if it encodes. The ring is nil if the node has no keys.
func (k *Keys) Held() (ring *opaque.Ring, why error) {
	if now := k.issues.Load(); now != nil {
		return now.ring, now.held
	}
	return nil, nil
}

// Settle lets a ring that Held has returned encode, or says why it still does not. A ring that was
// replaced meanwhile changes nothing.
func (k *Keys) Settle(ring *opaque.Ring, why error) {
	if now := k.issues.Load(); now != nil && now.ring == ring {
		k.issues.CompareAndSwap(now, &issuing{ring, why})
	}
}

// Replace puts ring into force; nil takes the keys away. held is nil, or why the ring encodes
// nothing until Settle; requests for opaque IDs get this error. A ring that makes the same opaque
// IDs as the ring before goes on encoding. After an error nothing has changed: see [Keys.After].
func (k *Keys) Replace(ring *opaque.Ring, held error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next, err := k.seen.With(ring)
	if err != nil {
		return err
	}
	k.seen = next
	if ring == nil {
		k.issues.Store(nil)
		return nil
	}
	only := *ring
	only.Keys = map[int][]byte{ring.Issue: ring.Keys[ring.Issue]}
	if now := k.issues.Load(); now != nil && now.held == nil && now.encodesAs(ring) {
		held = nil
	}
	k.issues.Store(&issuing{&only, held})
	return nil
}

// After returns the keys that the node will have had once ring is in force, or why ring cannot follow
// those that it had: see [Seen.With].
func (k *Keys) After(ring *opaque.Ring) (Seen, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen.With(ring)
}

// texts are the formats that are opaque.
var texts = map[string]opaque.Text{Opaque: opaque.Decimal, OpaqueBase62: opaque.Base62, OpaqueCrockford: opaque.Crockford}

// open returns an opaque format.
func (k *Keys) open(tag, name string) (*Format, error) {
	if name == "" || name == Number {
		return nil, nil //nolint:nilnil // a nil Format writes numbers
	}
	text, ok := texts[name]
	if !ok {
		return nil, leaf.BadField("format", name, fmt.Sprintf("must be %s, %s, %s, %s or %s", Number, Text, Opaque, OpaqueBase62, OpaqueCrockford))
	}
	var now *issuing
	if k != nil {
		now = k.issues.Load()
	}
	switch {
	case now == nil:
		return nil, leaf.BadField("format", name, "needs keys, and this node has none: its configuration does not set "+KeysKey)
	case now.held != nil:
		return nil, now.held
	}
	return &Format{name: name, by: &opaqueWriter{text, now.ring.Largest(), now.ring.Tag(tag)}}, nil
}
