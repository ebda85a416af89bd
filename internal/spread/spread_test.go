package spread_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/spread"
)

// TestNeverChanges: what is stored rests on these values. They are those of FNV-1a and MurmurHash3 elsewhere.
func TestNeverChanges(t *testing.T) {
	for text, want := range map[string]uint64{"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8} {
		if got := spread.Sum(text); got != want {
			t.Errorf("Sum(%q) = %#x, want %#x", text, got, want)
		}
	}
	for x, want := range map[uint64]uint64{0: 0, 1: 0xb456bcfc34c2cb2c, 2: 0x3abf2a20650683e7} {
		if got := spread.Mix(x); got != want {
			t.Errorf("Mix(%d) = %#x, want %#x", x, got, want)
		}
	}
}
