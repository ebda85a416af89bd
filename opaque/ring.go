package opaque

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Limits of a ring.
const (
	SecretSize     = 32 // bytes of a key
	MaxVersionBits = 8
)

// A Ring is what all nodes and programs that share opaque IDs must have in common. It is a file that
// only they can read:
//
//	bits 63
//	version-bits 2
//	issue 1
//	key 0 4f3c…   64 hexadecimal digits
//	key 1 9be1…
//	used 1        no new key gets a version up to this one
//
// Empty lines, and what follows a #, are comments. To change the key, add the new one on every node
// and in every program first; when all of them have read it, change the issue line.
// An old key stays for as long as its opaque IDs are out there.
type Ring struct {
	Bits        int            // of an opaque ID: 63, or 53 for JavaScript
	VersionBits int            // of these, how many name the key, from 0 to [MaxVersionBits]: 2 bits are 4 keys. They never change.
	Issue       int            // the version of the key that encodes
	Keys        map[int][]byte // by version: secrets of [SecretSize] random bytes

	// Used is the highest version that ever had a key, where that key may be gone from Keys. Two keys
	// of one version make the same opaque ID of two IDs, so no version gets a second key.
	Used int
}

// NewRing returns a ring with one random key, for a new file: see [Ring.Text]. A program that makes a ring at each start cannot
// read the opaque IDs of earlier ones, and makes some of them again for other IDs.
func NewRing(bits, versionBits int) (*Ring, error) {
	r := &Ring{Bits: bits, VersionBits: versionBits, Keys: map[int][]byte{0: newSecret()}}
	return r, r.Validate()
}

// Add adds a random key, which decodes only until Issue is its version. It returns the version, which
// had no key before.
func (r *Ring) Add() (int, error) {
	version := r.last() + 1
	if version >= 1<<r.VersionBits {
		return 0, fmt.Errorf("all %d versions have or had a key: version-bits %d", 1<<r.VersionBits, r.VersionBits)
	}
	r.Keys[version], r.Used = newSecret(), version
	return version, nil
}

// last returns the highest version that is known to have or have had a key.
func (r *Ring) last() int {
	last := r.Used
	for version := range r.Keys {
		last = max(last, version)
	}
	return last
}

func newSecret() []byte {
	secret := make([]byte, SecretSize)
	rand.Read(secret) // never fails: it ends the program
	return secret
}

// Validate returns what is wrong with a ring, or nil.
func (r *Ring) Validate() error {
	switch {
	case r.Bits != 63 && r.Bits != 53:
		return fmt.Errorf("bits %d: must be 63 or 53", r.Bits)
	case r.VersionBits < 0 || r.VersionBits > MaxVersionBits:
		return fmt.Errorf("version-bits %d: must be from 0 to %d", r.VersionBits, MaxVersionBits)
	}
	for version, secret := range r.Keys {
		switch {
		case version < 0 || version >= 1<<r.VersionBits:
			return fmt.Errorf("key %d: the version must be from 0 to %d, because version-bits is %d", version, 1<<r.VersionBits-1, r.VersionBits)
		case len(secret) != SecretSize:
			return fmt.Errorf("key %d has %d bytes: must be %d", version, len(secret), SecretSize)
		}
	}
	if r.Used < 0 || r.Used >= 1<<r.VersionBits {
		return fmt.Errorf("used %d: the version must be from 0 to %d, because version-bits is %d", r.Used, 1<<r.VersionBits-1, r.VersionBits)
	}
	if r.Keys[r.Issue] == nil {
		return fmt.Errorf("issue %d: there is no key of this version", r.Issue)
	}
	return nil
}

// Largest returns the largest ID that has an opaque ID: the bits that name the key are taken from the ID.
func (r *Ring) Largest() int64 { return int64(uint64(1)<<(r.Bits-r.VersionBits) - 1) }

// ParseRing reads a ring. An error names the line, but never a key.
func ParseRing(in io.Reader) (*Ring, error) {
	r := &Ring{Keys: map[int][]byte{}}
	seen := map[string]bool{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		name := words[0]
		if seen[name] && name != "key" && name != "used" { // each key that is added brings one of both
			return nil, fmt.Errorf("line %d: a second %q", n, name)
		}
		seen[name] = true
		if err := r.set(words); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, name := range []string{"bits", "version-bits", "issue"} {
		if !seen[name] {
			return nil, fmt.Errorf("there is no line %q", name)
		}
	}
	return r, r.Validate()
}

// ReadRing reads a ring from a file. An error names the file, but never a key.
func ReadRing(file string) (*Ring, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := ParseRing(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// set takes one line of the file.
func (r *Ring) set(words []string) error {
	used := r.Used
	fields := map[string]*int{"bits": &r.Bits, "version-bits": &r.VersionBits, "issue": &r.Issue, "used": &r.Used}
	if words[0] == "key" {
		if len(words) != 3 {
			return fmt.Errorf("%q needs a version and %d hexadecimal digits", "key", 2*SecretSize)
		}
		version, err := strconv.Atoi(words[1])
		if err != nil {
			return errors.New("key: the version must be a number") // without the word, which may be the secret
		}
		if r.Keys[version] != nil {
			return fmt.Errorf("a second key %d", version)
		}
		if r.Keys[version], err = hex.DecodeString(words[2]); err != nil {
			return fmt.Errorf("key %d: must be %d hexadecimal digits", version, 2*SecretSize)
		}
		return nil
	}
	field := fields[words[0]]
	if field == nil {
		return errors.New("must begin with bits, version-bits, issue, key or used") // without the word, which may be a secret of another file
	}
	if len(words) != 2 {
		return fmt.Errorf("%q needs one number", words[0])
	}
	value, err := strconv.Atoi(words[1])
	if err != nil {
		return fmt.Errorf("%s %q: must be a number", words[0], words[1])
	}
	*field = value
	r.Used = max(r.Used, used)
	return nil
}

// Text returns the ring as [ParseRing] reads it. It holds the secrets.
func (r *Ring) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# With this file, opaque IDs can be read. All nodes and programs need the same one.\n")
	fmt.Fprintf(&b, "bits %d\nversion-bits %d\nissue %d\n", r.Bits, r.VersionBits, r.Issue)
	for _, version := range slices.Sorted(maps.Keys(r.Keys)) {
		fmt.Fprintf(&b, "key %d %x\n", version, r.Keys[version])
	}
	fmt.Fprintf(&b, "used %d\n", r.last())
	return b.Bytes()
}
