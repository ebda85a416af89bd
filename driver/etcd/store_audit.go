package etcd

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/internal/audit"
)

var _ audit.Store = (*Store)(nil)

// entryValue is the value of a key audit/<id>.
type entryValue struct {
	formatted
	audit.Entry
}

// auditKey is the key of an entry, or where those of a moment begin. The hexadecimal digits of the ID
// are turned around, f for 0: so the newest entry comes first, which etcd can read by pages.
func (s *Store) auditKey(id string) string {
	const digits = "0123456789abcdef"
	return s.key("audit/") + strings.Map(func(r rune) rune {
		if i := strings.IndexRune(digits, r); i >= 0 {
			return rune(digits[len(digits)-1-i])
		}
		return r
	}, id)
}

// behind is what follows the key of a moment, and comes after the keys of all entries of that moment.
const behind = "."

// Record implements audit.Store. etcd does not tell the time, so the clock of this node stands for it.
func (s *Store) Record(ctx context.Context, e audit.Entry, keep time.Duration) (err error) {
	if err := e.Validate(); err != nil {
		return err
	}
	defer s.done(&err, "record a change")
	old := s.auditKey(audit.Oldest(e, time.Now(), keep)) + behind
	_, _, err = s.write(ctx, nil, []clientOp{
		put(s.auditKey(e.ID), encode(entryValue{Entry: e})),
		clientv3.OpDelete(old, clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.key("audit/")))),
	}, nil)
	return err
}

// Entries implements audit.Store.
func (s *Store) Entries(ctx context.Context, q audit.Query) (page []audit.Entry, next string, err error) {
	if err := q.Validate(); err != nil {
		return nil, "", err
	}
	defer s.done(&err, "read changes")
	from := s.key("audit/")
	if q.Before != "" {
		from = s.auditKey(q.Before) + "\x00"
	}
	read, _, err := s.look(ctx, clientv3.OpGet(from, clientv3.WithRange(s.auditKey(audit.Lowest(q.Since))+behind), clientv3.WithLimit(audit.MaxPage)))
	if err != nil {
		return nil, "", err
	}
	for _, kv := range found(read[0]) {
		if len(page) == q.Limit {
			return page, page[q.Limit-1].ID, nil
		}
		var v entryValue
		if err := parse(string(kv.Key), kv.Value, &v); err != nil {
			return nil, "", err
		}
		v.Time = audit.TimeOf(v.ID)
		if next = v.ID; q.Has(v.Entry) {
			page = append(page, v.Entry)
		}
	}
	if !read[0].GetResponseRange().GetMore() {
		next = ""
	}
	return page, next, nil
}
