package opaque_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/opaque"
)

// ring returns a ring whose keys are 0, 1, 2 … in each byte.
func ring(bits, versionBits, keys, issue int) *opaque.Ring {
	r := &opaque.Ring{Bits: bits, VersionBits: versionBits, Issue: issue, Keys: map[int][]byte{}}
	for version := range keys {
		r.Keys[version] = bytes.Repeat([]byte{byte(version)}, opaque.SecretSize)
	}
	return r
}

// TestVectors: opaque IDs that are out there must stay what they are.
func TestVectors(t *testing.T) {
	for _, tc := range []struct {
		name string
		ring *opaque.Ring
		tag  string
		id   int64
		want int64
	}{
		{"first", ring(63, 2, 2, 0), "order", 1, 1821768030722844139},
		{"second", ring(63, 2, 2, 0), "order", 2, 1702197878193240756},
		{"another tag", ring(63, 2, 2, 0), "user", 1, 1521817376437257156},
		{"another key", ring(63, 2, 2, 1), "order", 1, 4225868367748248855},
		{"the largest", ring(63, 2, 2, 1), "order", 1<<61 - 1, 4186676009321379374},
		{"53 bits", ring(53, 1, 2, 0), "order", 1, 3126305946254360},
		{"no version", ring(63, 0, 1, 0), "order", math.MaxInt64, 8828494335983954345},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.ring.Tag(tc.tag)
			got, err := p.Encode(tc.id)
			if err != nil || got != tc.want {
				t.Errorf("%d is %d, %v, want %d", tc.id, got, err, tc.want)
			}
			if id, err := p.Decode(got); err != nil || id != tc.id {
				t.Errorf("%d comes back as %d, %v", tc.id, id, err)
			}
		})
	}
}

// TestRoundTrip: each ID comes back, within its bits, also when another key issues meanwhile.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{53, 63}).Draw(t, "bits")
		versionBits := rapid.IntRange(1, opaque.MaxVersionBits).Draw(t, "version bits")
		id := rapid.Int64Range(0, 1<<(size-versionBits)-1).Draw(t, "id")
		before, after := ring(size, versionBits, 2, 0).Tag("a"), ring(size, versionBits, 2, 1).Tag("a")
		one, err := before.Encode(id)
		if err != nil {
			t.Fatal(err)
		}
		two, err := after.Encode(id)
		if err != nil {
			t.Fatal(err)
		}
		if one == two || one < 0 || two < 0 || one>>size != 0 || two>>size != 0 {
			t.Fatalf("%d is %d, then %d", id, one, two)
		}
		for _, encoded := range []int64{one, two} {
			if back, err := after.Decode(encoded); err != nil || back != id {
				t.Fatalf("%d is %d and comes back as %d, %v", id, encoded, back, err)
			}
		}
	})
}

func TestOutOfRange(t *testing.T) {
	p := ring(53, 2, 3, 0).Tag("order")
	for _, id := range []int64{-1, math.MinInt64, 1 << 51, math.MaxInt64} {
		if _, err := p.Encode(id); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Encode(%d): %v", id, err)
		}
	}
	for _, encoded := range []int64{-1, math.MinInt64, 1 << 53, math.MaxInt64} {
		if _, err := p.Decode(encoded); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Decode(%d): %v", encoded, err)
		}
	}
	if _, err := p.Decode(3 << 51); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("an opaque ID of key 3, which is not there: %v", err)
	}
}

// TestAllocatesNothing: one permutation serves the hot path of a program.
func TestAllocatesNothing(t *testing.T) {
	p := ring(63, 2, 2, 0).Tag("order")
	if n := testing.AllocsPerRun(100, func() {
		encoded, err := p.Encode(17)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Decode(encoded); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Encode and Decode allocate %v times", n)
	}
}

func TestRing(t *testing.T) {
	r, err := opaque.NewRing(63, 1)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := r.Add(); version != 1 || err != nil {
		t.Errorf("the second key has version %d, %v", version, err)
	}
	if _, err := r.Add(); err == nil || !strings.Contains(err.Error(), "all 2 versions have or had a key") {
		t.Errorf("a third key of one bit: %v", err)
	}
	back, err := opaque.ParseRing(bytes.NewReader(r.Text()))
	if err != nil || !bytes.Equal(back.Text(), r.Text()) {
		t.Errorf("the ring comes back as\n%s%v", back.Text(), err)
	}
	if bytes.Equal(r.Keys[0], r.Keys[1]) {
		t.Error("two random keys are one")
	}
}

// TestVersionIsUsedOnce: a key that is taken out of the file leaves its version used. A new key of
// that version would make opaque IDs again that the old one has made of other IDs.
func TestVersionIsUsedOnce(t *testing.T) {
	r, err := opaque.NewRing(63, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(line string) bool{ // what an operator takes out
		"the old key":                  func(line string) bool { return strings.HasPrefix(line, "key 0 ") || line == "issue 0" },
		"the key that was added last":  func(line string) bool { return strings.HasPrefix(line, "key 1 ") },
		"the lines of a former change": func(line string) bool { return line == "used 0" },
	} {
		t.Run(name, func(t *testing.T) {
			var kept []string
			for line := range strings.Lines(string(r.Text()) + "used 0\n") {
				if line = strings.TrimSpace(line); !edit(line) {
					kept = append(kept, line)
				}
			}
			text := strings.Join(kept, "\n") + "\n"
			if !strings.Contains(text, "issue") {
				text += "issue 1\n"
			}
			edited, err := opaque.ParseRing(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if version, err := edited.Add(); version != 2 || err != nil {
				t.Errorf("the next key has version %d, %v; want 2", version, err)
			}
		})
	}
}

func TestRefusedRings(t *testing.T) {
	key := strings.Repeat("ab", 32)
	good := "bits 63\nversion-bits 1\nissue 0\nkey 0 " + key + "\n"
	for _, tc := range []struct{ name, text, want string }{
		{"bits", strings.Replace(good, "63", "64", 1), "bits 64: must be 63 or 53"},
		{"version bits", strings.Replace(good, "bits 1", "bits 9", 1), "version-bits 9: must be from 0 to 8"},
		{"no key", strings.Replace(good, "issue 0", "issue 1", 1), "issue 1: there is no key"},
		{"version", good + "key 2 " + key, "key 2: the version must be from 0 to 1"},
		{"short key", good + "key 1 " + key[2:], "key 1 has 31 bytes"},
		{"odd key", good + "key 1 " + key[1:], "line 5: key 1: must be 64 hexadecimal digits"},
		{"twice", good + "key 0 " + key, "line 5: a second key 0"},
		{"twice, spelled otherwise", good + "key 00 " + key, "line 5: a second key 0"},
		{"twice bits", good + "bits 53", `line 5: a second "bits"`},
		{"unknown", good + "radix 2", "line 5: must begin with bits, version-bits, issue, key or used"},
		{"another file", key, "line 1: must begin with bits"},
		{"the key first", good + "key " + key + " 1", "line 5: key: the version must be a number"},
		{"no number", strings.Replace(good, "63", "many", 1), `line 1: bits "many": must be a number`},
		{"two numbers", strings.Replace(good, "63", "63 53", 1), `line 1: "bits" needs one number`},
		{"empty", "# nothing\n", `there is no line "bits"`},
		{"used", good + "used 2", "used 2: the version must be from 0 to 1"},
		{"half a key", good + "key 1", "line 5: \"key\" needs a version and 64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := opaque.ParseRing(strings.NewReader(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), key[:20]) {
				t.Errorf("the error tells the key: %v", err)
			}
		})
	}
	if _, err := opaque.ParseRing(strings.NewReader(good)); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func FuzzParseRing(f *testing.F) {
	f.Add([]byte("bits 63\nversion-bits 1\nissue 0\nkey 0 " + strings.Repeat("ab", 32)))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := opaque.ParseRing(bytes.NewReader(text))
		if err != nil {
			return
		}
		if again, err := opaque.ParseRing(bytes.NewReader(r.Text())); err != nil || !bytes.Equal(again.Text(), r.Text()) {
			t.Errorf("%q is read, and its text is not: %v", text, err)
		}
		r.Tag("a")
	})
}
