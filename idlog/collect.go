package idlog

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// collector reads the logs one after the other, checks the order, and hands the
// records on to be sorted.
type collector struct {
	Options
	report  Report
	numbers map[string]uint32 // of keys
	memory  int64             // of keys, estimated
	last    string            // key of the last record
	lastNo  uint32            // its number

	buf    []entry
	sorter *sorter
	ticker ticker
}

// newKey is about what a key costs beside its bytes: its report, its place in the map,
// and the last ID of the current log.
const newKey = 300

func (c *collector) number(key string) (uint32, error) {
	if c.OneSpace {
		key = ""
	}
	if len(c.report.Keys) > 0 && key == c.last {
		return c.lastNo, nil
	}
	no, ok := c.numbers[key]
	if !ok {
		if c.memory += int64(len(key)) + newKey; c.memory > c.keyBytes() {
			return 0, fmt.Errorf("%w: more than %d keys in %d bytes (an eighth of the limit)", ErrManyKeys, len(c.report.Keys), c.keyBytes())
		}
		no = uint32(len(c.report.Keys))
		c.report.Keys = append(c.report.Keys, KeyReport{Key: key})
		c.numbers[key] = no
	}
	c.last, c.lastNo = key, no
	return no, nil
}

// previous is the last ID of a key in the current log.
type previous struct {
	id  int64
	has bool
}

// log reads one log.
func (c *collector) log(ctx context.Context, src Source) error {
	in, err := src.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	r := NewReader(in, src.Name)
	stat := LogReport{Name: src.Name, Format: r.Format()}
	prev := make([]previous, len(c.report.Keys))
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		no, err := c.number(rec.Key)
		if err != nil {
			return fmt.Errorf("%v: %w", r.Place(), err)
		}
		for int(no) >= len(prev) {
			prev = append(prev, previous{})
		}
		key, p := &c.report.Keys[no], &prev[no]
		if p.has && rec.Lo <= p.id && !c.AnyOrder {
			key.Disorders++
			if len(c.report.Disorders) < c.List {
				c.report.Disorders = append(c.report.Disorders, Disorder{rec, p.id, r.Place()})
			}
		}
		*p = previous{rec.Hi, true}
		key.IDs = sum(key.IDs, rec.Len())
		stat.IDs = sum(stat.IDs, rec.Len())
		stat.Records++
		if err := c.add(entry{rec.Lo, rec.Hi, no}); err != nil {
			return err
		}
		if stat.Records%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.ticker.tick(r.Place().Offset, checkEvery)
		}
	}
	stat.Torn = r.Torn()
	c.report.Logs = append(c.report.Logs, stat)
	return nil
}

// checkEvery is after how many records the context and the clock are looked at.
const checkEvery = 1 << 14

// add puts an entry into the buffer, and a full buffer on its way.
func (c *collector) add(e entry) error {
	if n := len(c.buf); n > 0 && !c.sorter.apart && e.follows(c.buf[n-1]) {
		c.buf[n-1].hi = e.hi
		return nil
	}
	if len(c.buf) == cap(c.buf) {
		var err error
		if c.buf, err = c.sorter.exchange(c.buf); err != nil {
			return err
		}
	}
	c.buf = append(c.buf, e)
	return nil
}

// firstBuffer is as long as the logs can need, if that is known to be less than the
// limit. Memory that is not touched costs nothing.
func (o *Options) firstBuffer(logBytes int64, known bool) int {
	if limit := int64(o.bufferLen()); !known || logBytes/2 >= limit {
		return int(limit)
	}
	return int(max(logBytes/2, 1))
}

// knownSize returns the size of all logs, and whether it is known.
func knownSize(logs []Source) (size int64, known bool) {
	known = true
	for _, l := range logs {
		known = known && l.Size > 0
		size += l.Size
	}
	return size, known
}
