package good

import "testing"

func FuzzGood(f *testing.F) {
	f.Add("seed")
	f.Fuzz(func(*testing.T, string) {})
}

func FuzzFine(f *testing.F) {
	f.Fuzz(func(*testing.T, []byte) {})
}
