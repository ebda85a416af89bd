package format

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/opaque"
)

// The formats that have a name of their own; the others are opaque with a text of package opaque.
const (
	Number          = "number"
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
	issues atomic.Pointer[opaque.Ring] // only with the key that encodes: a node decodes nothing

	mu   sync.Mutex
	seen Seen
}

// Recall adds what the node had before its start. Call it before Replace.
func (k *Keys) Recall(seen Seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = seen
}

// Replace makes ring the one that counts; nil takes the keys away. After an error nothing has
// changed: see [Keys.After].
func (k *Keys) Replace(ring *opaque.Ring) error {
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
	k.issues.Store(&only)
	return nil
}

// After returns the keys that the node will have had once ring counts, or why ring cannot follow
// those that it had: see [Seen.With].
func (k *Keys) After(ring *opaque.Ring) (Seen, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen.With(ring)
}

// Segment returns the format with this name for the IDs of a tag, nil for number and "". The
// error is leaf.ErrBadRequest.
func (k *Keys) Segment(tag, name string) (*Format, error) { return k.open(tag, name) }

// Snowflake is Segment for the IDs of snowflake mode, whatever the key of the request.
func (k *Keys) Snowflake(name string) (*Format, error) { return k.open(SnowflakeTag, name) }

// texts are the formats that are opaque.
var texts = map[string]opaque.Text{Opaque: opaque.Decimal, OpaqueBase62: opaque.Base62, OpaqueCrockford: opaque.Crockford}

func (k *Keys) open(tag, name string) (*Format, error) {
	if name == "" || name == Number {
		return nil, nil //nolint:nilnil // a nil Format writes numbers
	}
	text, ok := texts[name]
	if !ok {
		return nil, leaf.BadField("format", name, fmt.Sprintf("must be %s, %s, %s or %s", Number, Opaque, OpaqueBase62, OpaqueCrockford))
	}
	var ring *opaque.Ring
	if k != nil {
		ring = k.issues.Load()
	}
	if ring == nil {
		return nil, leaf.BadField("format", name, "needs keys, and this node has none: its configuration does not set "+KeysKey)
	}
	return &Format{name: name, text: text, largest: ring.Largest(), permutation: ring.Tag(tag)}, nil
}
