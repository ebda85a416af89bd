package forward_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// elsewhere is an engine whose tags another node owns.
type elsewhere struct{ to owner.Route }

func (e elsewhere) Next(context.Context, string) (int64, error) {
	return 0, &owner.ElsewhereError{Tag: "order", Route: e.to}
}

func (e elsewhere) NextN(context.Context, string, int) ([]leaf.Range, error) {
	return nil, &owner.ElsewhereError{Tag: "order", Route: e.to}
}

// BenchmarkForward is a call that goes to the owner over a real connection: by one caller, and by many at once.
func BenchmarkForward(b *testing.B) {
	peers := forward.NewPeers(nil, slog.New(slog.DiscardHandler))
	defer func() { _ = peers.Close() }()
	to := owner.Route{Address: serve(b), Secret: "secret"}
	i := forward.New(forward.Config{Local: elsewhere{to}, Remote: peers, Self: "a", MaxWait: 5 * time.Second, Attempt: time.Second})
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := i.Next(b.Context(), "order"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := i.Next(b.Context(), "order"); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
