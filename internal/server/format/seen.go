package format

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	"github.com/leaf-idgen/leaf/opaque"
)

// Seen are the keys that a node has had: enough to tell two keys of one version apart, and not to
// encode or decode. The zero value has none.
type Seen struct {
	Bits        int            `json:"bits"`
	VersionBits int            `json:"version_bits"`
	Keys        map[int]string `json:"keys"` // by version: SHA-256 of the key in hexadecimal digits
}

// With returns s with the keys of ring, or why ring cannot follow: opaque IDs of two keys with one
// version, or of two sizes, can be equal although their IDs are not. Without a ring it returns s.
func (s Seen) With(ring *opaque.Ring) (Seen, error) {
	if ring == nil {
		return s, nil
	}
	next := Seen{ring.Bits, ring.VersionBits, map[int]string{}}
	maps.Copy(next.Keys, s.Keys)
	for _, n := range []struct {
		line     string
		was, now int
	}{{"bits", s.Bits, ring.Bits}, {"version-bits", s.VersionBits, ring.VersionBits}} {
		if len(s.Keys) > 0 && n.was != n.now {
			return s, fmt.Errorf("%s must stay %d and is %d: opaque IDs of two sizes can be equal although their IDs are not", n.line, n.was, n.now)
		}
	}
	for version, secret := range ring.Keys {
		sum := sha256.Sum256(secret)
		now := hex.EncodeToString(sum[:])
		if was, ok := s.Keys[version]; ok && was != now {
			return s, fmt.Errorf("key %d must stay the same: opaque IDs of two keys with one version can be equal although their IDs are not; leaf opaque key adds a key", version)
		}
		next.Keys[version] = now
	}
	return next, nil
}
