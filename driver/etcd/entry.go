package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/worker"
)

// formatted is the version of a value; 0 is the first one. A new field that an older
// program may overlook does not change it. One that changes what the other fields mean
// does, and then an older program reads nothing of the value.
type formatted struct {
	Format int `json:"format,omitempty"`
}

func (f formatted) format() int { return f.Format }

// namespaceValue is the value of the key namespace.
type namespaceValue struct {
	formatted

	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	IssueFrom   int64  `json:"issue_from"`
	Incarnation string `json:"incarnation"`

	// Forgotten is how many of the numbers that were given have lost their record. The
	// key given counts those that were: it is written once for each.
	Forgotten int64 `json:"forgotten,omitempty"`
}

// claimValue is the value of a key claims/<n>.
type claimValue struct {
	formatted

	Address  string `json:"address"`
	Nonce    string `json:"nonce"`
	Floor    int64  `json:"floor"`
	Released bool   `json:"released"`
}

// peerValue is the value of a key peers/<nonce>.
type peerValue struct {
	formatted

	Address string `json:"address"`
	Clock   string `json:"clock"`
	Nonce   string `json:"nonce"`
	Number  int64  `json:"number"`
}

// encode returns a value as it is stored. The types above always can be.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("etcd: %T cannot be written as JSON: %v", v, err))
	}
	return string(text)
}

// decode reads the value of a key of the registry.
func decode(key string, value []byte, into interface{ format() int }) error {
	if err := parse(key, value, into); err != nil {
		return fmt.Errorf("%w: %w", worker.ErrForeign, err)
	}
	return nil
}

// parse reads the value of a key. It overlooks fields that it does not know, and refuses a
// format that it does not know.
func parse(key string, value []byte, into interface{ format() int }) error {
	d := json.NewDecoder(bytes.NewReader(value))
	err := d.Decode(into)
	switch {
	case err != nil:
	case into.format() != 0:
		err = fmt.Errorf("format %d, which this version of leaf does not know", into.format())
	case string(bytes.TrimSpace(value[:d.InputOffset()])) == "null":
		err = errors.New("it is no object")
	default:
		if _, end := d.Token(); end != io.EOF {
			err = fmt.Errorf("more follows after byte %d", d.InputOffset())
		}
	}
	if err != nil {
		return unreadable(key, value, err)
	}
	return nil
}

// maxMoment is far beyond every layout, and leaves room for sums.
const maxMoment = math.MaxInt64 / 4

// decodeBound reads the value of a key bounds/<n>, in the one way to write it.
func decodeBound(key string, value []byte) (int64, error) {
	bound, err := strconv.ParseInt(string(value), 10, 64)
	if err == nil && (bound < 0 || bound > maxMoment || strconv.FormatInt(bound, 10) != string(value)) {
		err = fmt.Errorf("not a moment of 0 to %d", int64(maxMoment))
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", worker.ErrForeign, unreadable(key, value, err))
	}
	return bound, nil
}

// decodeNumber reads the number at the end of a key. There is only one way to write
// it: claims/07 beside claims/7 would be two owners.
func decodeNumber(key, prefix string) (int64, error) {
	text := strings.TrimPrefix(key, prefix)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%w: etcd key %q does not end in a number", worker.ErrForeign, key)
	}
	return n, nil
}

// shellWord is a key as a person types it in a shell. Without quotes, a key with a space would be two words, and
// etcdctl del deletes all keys between two.
func shellWord(key string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-", r)
	}
	if !strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
		return key
	}
	return "'" + strings.ReplaceAll(key, "'", `'\''`) + "'"
}

func unreadable(key string, value []byte, err error) error {
	const longest = 200 // enough to recognise a value
	return fmt.Errorf("etcd key %q holds %.*q: %w", key, longest, value, err)
}

// version is what a record was read with: the revisions of its two keys, 0 for one
// that is absent, and the text of its claim.
type version struct {
	claim, bound int64
	text         string
}

func (v version) String() string {
	if v.claim == 0 && v.bound == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", v.claim, v.bound, v.text)
}

func parseVersion(s string) (v version, err error) {
	if s == "" {
		return v, nil
	}
	revisions, text, _ := strings.Cut(s, " ")
	claim, bound, _ := strings.Cut(revisions, "/")
	v.text = text
	if v.claim, err = strconv.ParseInt(claim, 10, 64); err == nil {
		v.bound, err = strconv.ParseInt(bound, 10, 64)
	}
	if err != nil || v.String() != s {
		return version{}, fmt.Errorf("version %q is not one of etcd's", s)
	}
	return v, nil
}
