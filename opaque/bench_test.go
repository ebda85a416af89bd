package opaque_test

import "testing"

func BenchmarkEncode(b *testing.B) {
	p := ring(63, 2, 2, 0).Tag("order")
	for i := int64(0); b.Loop(); i++ {
		if _, err := p.Encode(i); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTag(b *testing.B) {
	r := ring(63, 2, 2, 0)
	for b.Loop() {
		r.Tag("order")
	}
}
