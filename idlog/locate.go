package idlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
)

// locate reads the logs again to find out where the listed findings come from. Only a
// check that found some pays for it.
func (c *collector) locate(ctx context.Context, logs []Source, found []entry, turned []turned) error {
	if len(found)+len(turned) == 0 {
		return nil
	}
	// found is sorted by key and lo: each key has one stretch of it.
	stretch := map[string][2]int{}
	for i, e := range found {
		key := c.report.Keys[e.key].Key
		c.report.Duplicates = append(c.report.Duplicates, Duplicate{Key: key, Lo: e.lo, Hi: e.hi})
		s, ok := stretch[key]
		if !ok {
			s[0] = i
		}
		s[1] = i + 1
		stretch[key] = s
	}
	calls := c.callsOf(turned)
	size, _ := knownSize(logs)
	c.ticker.begin("locate", size, c.Progress)
	return c.each(ctx, logs, func(rec Record, at Place) error {
		key := rec.Key
		if c.OneSpace {
			key = ""
		}
		if s, ok := stretch[key]; ok {
			locateIn(c.report.Duplicates[s[0]:s[1]], rec, at)
		}
		for _, end := range []bool{false, true} {
			if len(calls) == 0 {
				break
			}
			for _, i := range calls[nameOf(key, rec, end)] {
				c.report.Inversions[i].found(rec, at, end)
			}
		}
		return nil
	})
}

func locateIn(all []Duplicate, rec Record, at Place) {
	for i := sort.Search(len(all), func(i int) bool { return all[i].Lo >= rec.Lo }); i < len(all) && all[i].Lo <= rec.Hi; i++ {
		all[i].Times++
		if len(all[i].Places) < MaxPlaces {
			all[i].Places = append(all[i].Places, at)
		}
	}
}

// each calls do for the records that were read at first: a log that grows has more by now.
func (c *collector) each(ctx context.Context, logs []Source, do func(Record, Place) error) error {
	for i, src := range logs {
		if err := c.eachOf(ctx, src, c.report.Logs[i].Records, do); err != nil {
			return err
		}
		c.ticker.next(src.Size)
	}
	return nil
}

func (c *collector) eachOf(ctx context.Context, src Source, records uint64, do func(Record, Place) error) error {
	in, err := src.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	r := NewReader(in, src.Name)
	for n := uint64(1); n <= records; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("read %v: the log has become shorter: %w", r.Place(), io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		if n%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.ticker.tick(r.Place().Offset, 0)
		}
		if err := do(rec, r.Place()); err != nil {
			return err
		}
	}
	return nil
}
