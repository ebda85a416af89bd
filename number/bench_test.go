package number_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/number"
)

func BenchmarkAppend(b *testing.B) {
	for _, text := range []string{"INV-{seq:08}", "INV-{seq:08}-{check:luhn}", "INV-{seq:08:36}-{check:mod97}"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			made, err := number.ParseTemplate(text)
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, 0, number.MaxLen)
			for id := int64(0); b.Loop(); id = (id + 1) & (1<<26 - 1) {
				if _, err := made.Append(dst, id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	made, err := number.ParseTemplate("INV-{seq:08}-{check:luhn}")
	if err != nil {
		b.Fatal(err)
	}
	text, err := made.Format(1234)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := made.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
