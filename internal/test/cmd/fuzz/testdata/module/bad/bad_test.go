package bad

import "testing"

// FuzzBad fails for the second input that the fuzzer makes.
func FuzzBad(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		if n != 1 {
			t.Errorf("%d is not 1", n)
		}
	})
}

// FuzzSeed fails for its own seed.
func FuzzSeed(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) { t.Error(n) })
}
