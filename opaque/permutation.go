package opaque

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// A Permutation encodes and decodes the IDs of one tag. Make it with [Ring.Tag].
// It is safe for concurrent use.
type Permutation struct {
	bits  uint // of the ID, without the version
	issue int
	keys  []*ff1 // by version; nil: no such key
}

// Tag returns the permutation of a tag. It costs some microseconds for each key: keep it.
func (r *Ring) Tag(tag string) *Permutation {
	p := &Permutation{bits: uint(r.Bits - r.VersionBits), issue: r.Issue, keys: make([]*ff1, 1<<r.VersionBits)}
	for version, secret := range r.Keys {
		info := fmt.Sprintf("leaf opaque ID, %d bits, tag %s", p.bits, tag)
		key, err := hkdf.Key(sha256.New, secret, nil, info, 32)
		if err == nil {
			p.keys[version], err = newFF1(key, p.bits)
		}
		if err != nil {
			panic(err) // a key of 32 bytes is right for both
		}
	}
	return p
}

// Encode returns the opaque ID of id, made with the key that the ring issues with. An ID below 0 or
// from 2^(Bits-VersionBits) has none: [leaf.ErrBadRequest].
func (p *Permutation) Encode(id int64) (int64, error) {
	if id < 0 || id>>p.bits != 0 {
		return 0, leaf.BadField("id", id, fmt.Sprintf("must be from 0 to %d, because the version of the key takes the other bits", int64(1)<<p.bits-1))
	}
	return int64(p.issue)<<p.bits | int64(p.keys[p.issue].encrypt(uint64(id))), nil
}

// Decode returns the ID of an opaque ID. A number that is too large, or of a key that the ring does not have, fails with
// [leaf.ErrBadRequest]; any other number decodes to some ID.
func (p *Permutation) Decode(encoded int64) (int64, error) {
	version := encoded >> p.bits
	if encoded < 0 || version >= int64(len(p.keys)) {
		return 0, leaf.BadField("opaque ID", encoded, fmt.Sprintf("must be from 0 to %d", uint64(len(p.keys))<<p.bits-1))
	}
	key := p.keys[version]
	if key == nil {
		return 0, leaf.BadField("opaque ID", encoded, fmt.Sprintf("was made with key %d, which is not among the keys", version))
	}
	return int64(key.decrypt(uint64(encoded) & (1<<p.bits - 1))), nil
}
