package etcd

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// rowsAtOnce is how many rows one call reads.
const rowsAtOnce = 5000

// Lookup implements segment.Store.
func (s *Store) Lookup(ctx context.Context, tag string) (row segment.Row, err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return row, err
	}
	defer s.done(&err, "look up tag %q", tag)
	key := s.rowKey(tag)
	answers, _, err := s.look(ctx, get(key))
	if err != nil {
		return row, err
	}
	text := textOf(answers[0])
	if text == "" {
		return row, leaf.ErrUnknownTag
	}
	return parseRow(tag, key, []byte(text))
}

// Rows implements segment.Store. It reads by pages: a row that is there all the time is in one of
// them.
func (s *Store) Rows(ctx context.Context) (rows []segment.Row, err error) {
	defer s.done(&err, "read rows")
	for from := s.rowKey(""); ; {
		page, err := s.rowsFrom(ctx, from, rowsAtOnce)
		if err != nil {
			return nil, err
		}
		if rows = append(rows, page...); len(page) < rowsAtOnce {
			return rows, nil
		}
		from = s.rowKey(page[len(page)-1].Tag) + "\x00"
	}
}

// RowsAfter implements segment.Catalog.
func (s *Store) RowsAfter(ctx context.Context, after string, limit int) (rows []segment.Row, err error) {
	defer s.done(&err, "read %d rows after tag %q", limit, after)
	return s.rowsFrom(ctx, s.rowKey(after)+"\x00", limit)
}

// rowsFrom returns up to limit rows whose keys are from or come after it, in the order of the keys.
func (s *Store) rowsFrom(ctx context.Context, from string, limit int) ([]segment.Row, error) {
	folder := s.rowKey("")
	answers, _, err := s.look(ctx, clientv3.OpGet(from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(folder)), clientv3.WithLimit(int64(limit))))
	if err != nil {
		return nil, err
	}
	var rows []segment.Row
	for _, kv := range found(answers[0]) {
		rows = append(rows, listed(folder, kv))
	}
	return rows, nil
}

// listed returns the row of a key below folder. One that cannot be read has a problem.
func listed(folder string, kv *mvccpb.KeyValue) segment.Row {
	tag := strings.TrimPrefix(string(kv.Key), folder)
	row, err := parseRow(tag, string(kv.Key), kv.Value)
	if err != nil {
		return segment.Row{Tag: tag, Problem: fmt.Errorf("read the row: %w", err)}
	}
	return row
}
