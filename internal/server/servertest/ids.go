package servertest

import (
	"math"
	"slices"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// oneID: among them numbers that a float64 cannot hold.
func oneID(b *bench) {
	for _, id := range []int64{1, 0, 1<<53 + 1, 1<<62 + 3, math.MaxInt64 - 1} {
		f := giving(leaf.Range{Lo: id, Hi: id + 1})
		wire := b.start(b, f.access())
		for _, mode := range []string{segment, snowflake} {
			for _, n := range []int{0, 1} {
				b.want(f, wire, way{mode, n}, "order", leaf.Range{Lo: id, Hi: id + 1})
			}
		}
	}
}

func batch(b *bench) {
	for _, n := range []int{2, 1000, leaf.MaxBatch} {
		lo := int64(1<<53 + 1)
		want := leaf.Range{Lo: lo, Hi: lo + int64(n)}
		f := giving(want)
		wire := b.start(b, f.access())
		b.want(f, wire, way{segment, n}, "order", want)
		b.want(f, wire, way{snowflake, n}, "order", want)
	}
}

func batchWithGaps(b *bench) {
	for _, want := range [][]leaf.Range{
		{{Lo: 5, Hi: 7}, {Lo: 9, Hi: 10}},
		{{Lo: 0, Hi: 1}, {Lo: 2, Hi: 3}, {Lo: 4, Hi: 5}},
		{{Lo: 1, Hi: 1000}, {Lo: 1 << 53, Hi: 1<<53 + 77}, {Lo: math.MaxInt64 - 9, Hi: math.MaxInt64}},
	} {
		f := giving(want...)
		wire := b.start(b, f.access())
		n := int64(0)
		for _, r := range want {
			n += r.Len()
		}
		for _, mode := range []string{segment, snowflake} {
			b.want(f, wire, way{mode, int(n)}, "order", want...)
		}
	}
}

// want makes a call and compares its result, and what the issuer was asked.
func (b *bench) want(f *fake, wire leaf.Issuers, w way, tag string, want ...leaf.Range) {
	b.Helper()
	got, err := w.ask(b.call(b.patience), wire, tag)
	if err != nil || !slices.Equal(got, want) {
		b.Errorf("%v(%q, %d) = %v, %v; want %v", w, tag, w.n, got, err, want)
	}
	asked := call{w.mode, tag, max(w.n, 1)}
	if calls := f.asked(); !slices.Equal(calls, []call{asked}) {
		b.Errorf("%v(%q, %d): the issuer was asked %v; want %v once", w, tag, w.n, calls, asked)
	}
}

// manyCallers: every ID goes to one caller, and to each of them in growing order.
func manyCallers(b *bench) {
	const callers, rounds = 64, 8
	wire := b.start(b, counting().access())
	got := make([][]leaf.Range, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for round := range rounds {
				w := way{segment, []int{0, 3, 1}[(i+round)%3]}
				ranges, err := w.ask(b.call(b.patience), wire, "order")
				if err != nil {
					b.Errorf("caller %d, round %d: %v", i, round, err)
					return
				}
				n := int64(0)
				for _, r := range ranges {
					n += r.Len()
				}
				if n != int64(max(w.n, 1)) {
					b.Errorf("caller %d, round %d: %d IDs; want %d", i, round, n, max(w.n, 1))
				}
				got[i] = append(got[i], ranges...)
			}
		})
	}
	group.Wait()
	seen := map[int64]int{}
	for i, ranges := range got {
		last := int64(0)
		for _, r := range ranges {
			for id := r.Lo; id < r.Hi; id++ {
				if other, ok := seen[id]; ok {
					b.Errorf("ID %d was given to caller %d and to caller %d", id, other, i)
				}
				seen[id] = i
				if id <= last {
					b.Errorf("caller %d got %d after %d", i, id, last)
				}
				last = id
			}
		}
	}
}
