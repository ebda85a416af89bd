package idlog

import (
	"context"
	"errors"
	"io"
	"sort"
)

// locate reads the logs again to find out where the listed duplicates come from. Only
// a check that found some pays for it.
func (c *collector) locate(ctx context.Context, logs []Source, found []entry) error {
	if len(found) == 0 {
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
	for _, src := range logs {
		if err := c.locateIn(ctx, src, stretch); err != nil {
			return err
		}
		c.ticker.next(src.Size)
	}
	return nil
}

func (c *collector) locateIn(ctx context.Context, src Source, stretch map[string][2]int) error {
	in, err := src.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	r := NewReader(in, src.Name)
	for n := 1; ; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
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
		key := rec.Key
		if c.OneSpace {
			key = ""
		}
		s, ok := stretch[key]
		if !ok {
			continue
		}
		all := c.report.Duplicates[s[0]:s[1]]
		for i := sort.Search(len(all), func(i int) bool { return all[i].Lo >= rec.Lo }); i < len(all) && all[i].Lo <= rec.Hi; i++ {
			all[i].Times++
			if len(all[i].Places) < MaxPlaces {
				all[i].Places = append(all[i].Places, r.Place())
			}
		}
	}
}
