package datadir_test

import (
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf/segment/fence"
)

// BenchmarkAppend is a line that is written and synced to each of one or two files, as
// the fence file was before and is since it has an end (docs/adr/0014).
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprint("files=", n), func(b *testing.B) {
			d := open(b, b.TempDir())
			var files []fence.AppendFile
			for i := range n {
				name := fmt.Sprint("f", i)
				if err := d.Replace(name, nil); err != nil {
					b.Fatal(err)
				}
				f, err := d.Append(name)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				files = append(files, f)
			}
			line := []byte("0123abcd [{\"tag\":\"order\",\"high\":123456789}]\n")
			for b.Loop() {
				for _, f := range files {
					if _, err := f.Write(line); err != nil {
						b.Fatal(err)
					}
					if err := f.Sync(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
