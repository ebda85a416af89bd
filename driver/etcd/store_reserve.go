package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Reserve implements segment.Store. It is one round trip if this Store was the last one that wrote the
// row.
func (s *Store) Reserve(ctx context.Context, req segment.Request) (res segment.Reservation, err error) {
	if err := req.Validate(); err != nil {
		return res, err
	}
	defer s.done(&err, "reserve tag %q", req.Tag)
	err = s.changeFrom(ctx, req.Tag, s.believed.of(req.Tag), func(r *segment.Row) error {
		length := req.LengthFor(r.Step)
		if err := segment.CheckRow(req.Tag, r.MaxID, r.Step, length); err != nil {
			return err
		}
		res = segment.Reservation{Range: leaf.Range{Lo: r.MaxID, Hi: r.MaxID + length}, Step: r.Step}
		r.MaxID = res.Range.Hi
		return nil
	})
	if err != nil { // also where it is not known whether the row has moved
		return segment.Reservation{}, err
	}
	return res, nil
}

// ReturnUnused implements segment.Store.
func (s *Store) ReturnUnused(ctx context.Context, tag string, hi, lo int64) (err error) {
	if err := segment.CheckReturn(hi, lo); err != nil {
		return err
	}
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	defer s.done(&err, "return unused IDs of tag %q", tag)
	return s.change(ctx, tag, func(r *segment.Row) error {
		if r.MaxID != hi {
			return fmt.Errorf("%w: max_id is %d, not %d", leaf.ErrConflict, r.MaxID, hi)
		}
		r.MaxID = lo
		return nil
	})
}

// Raise implements segment.Store.
func (s *Store) Raise(ctx context.Context, tag string, above int64) (maxID int64, err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return 0, err
	}
	defer s.done(&err, "raise tag %q to %d", tag, above)
	if above > segment.MaxMaxID {
		return 0, fmt.Errorf("%w: must not be above %d", leaf.ErrOverflow, int64(segment.MaxMaxID))
	}
	err = s.change(ctx, tag, func(r *segment.Row) error {
		r.MaxID = max(r.MaxID, above)
		maxID = r.MaxID
		return nil
	})
	if err != nil {
		return 0, err
	}
	return maxID, nil
}

// change lets f change the row of a tag, in one atomic step. f may be called several times, and refuses
// with an error.
func (s *Store) change(ctx context.Context, tag string, f func(r *segment.Row) error) error {
	return s.changeFrom(ctx, tag, "", f)
}

// changeFrom is change, and begins with text: what this Store believes the row to be, "" if it
// believes nothing. No refusal rests on a belief.
func (s *Store) changeFrom(ctx context.Context, tag, text string, f func(r *segment.Row) error) error {
	key, believes := s.rowKey(tag), text != ""
	for misses := 0; ; {
		if !believes && misses == 0 {
			answers, _, err := s.look(ctx, get(key))
			if err != nil {
				return err
			}
			text = textOf(answers[0])
		}
		if text == "" {
			s.believed.note(tag, "")
			return leaf.ErrUnknownTag
		}
		was, err := parseRow(tag, key, []byte(text))
		next := was
		if err == nil {
			err = f(&next)
		}
		switch {
		case err != nil && believes:
			believes = false
			continue
		case err != nil:
			return err
		case next == was && !believes:
			return nil
		}
		next.UpdateTime = time.Now().UTC()
		written := rowText(text, next)
		done, answers, err := s.write(ctx, []clientCmp{is(key, text)}, []clientOp{put(key, written)}, []clientOp{get(key)})
		if err != nil {
			return err
		}
		if done {
			s.believed.note(tag, written)
			return nil
		}
		text, believes = textOf(answers[0]), false
		if misses++; misses > freeMisses {
			if err := pause(ctx, misses); err != nil {
				return err
			}
		}
	}
}

// freeMisses is how often a write that came too late is sent again without a pause.
const freeMisses = 2

// pause waits for a random time, the longer the more often other writers were faster, up to 20 ms. A
// transaction takes about a millisecond.
func pause(ctx context.Context, misses int) error {
	longest := min(time.Duration(misses)*time.Millisecond, 20*time.Millisecond)
	return leaf.SystemRuntime().Wait(ctx, nil, rand.N(longest))
}
