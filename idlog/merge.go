package idlog

import "context"

// merge calls yield for the entries of all runs in order, until it returns an error.
// It reads through memory, in equal parts.
func (rf *runFile) merge(runs []run, memory []byte, yield func(entry) error) error {
	size := min(len(memory)/len(runs), maxRunBuffer)
	heap := make([]*runReader, 0, len(runs))
	for i, r := range runs {
		reader := rf.open(r, memory[i*size:(i+1)*size])
		ok, err := reader.advance()
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, reader)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for len(heap) > 0 {
		if err := yield(heap[0].head); err != nil {
			return err
		}
		ok, err := heap[0].advance()
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(heap, 0)
	}
	return nil
}

// sink moves heap[i] down to where no child is smaller.
func sink(heap []*runReader, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && compare(heap[right].head, heap[child].head) < 0 {
			child = right
		}
		if compare(heap[child].head, heap[i].head) >= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// Limits of the buffer of one run in a merge, in bytes, and of the number of runs.
const (
	minRunBuffer = 64 << 10
	maxRunBuffer = 1 << 20
	maxFanIn     = 512
)

// fanIn is how many runs are merged at once.
func fanIn(memory int64) int { return int(min(max(memory/minRunBuffer, 2), maxFanIn)) }

// reduce merges the oldest runs into new ones until few enough are left to be merged
// at once. With 1 GiB that takes more than 7e9 records that join nowhere. The file
// grows by what is merged.
func (rf *runFile) reduce(ctx context.Context, runs []run, memory []byte) ([]run, error) {
	limit := fanIn(int64(len(memory)))
	var buf []byte
	if len(runs) > limit {
		buf = make([]byte, 0, minRunBuffer)
	}
	for len(runs) > limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := rf.begin(buf)
		if err := rf.merge(runs[:limit], memory, w.add); err != nil {
			return nil, err
		}
		merged, err := w.end()
		if err != nil {
			return nil, err
		}
		runs = append(runs[limit:], merged)
	}
	return runs, nil
}
