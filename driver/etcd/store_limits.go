package etcd

import (
	"context"
	"errors"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

var _ limit.Store = (*Store)(nil)

// limitValue is the value of a key limits/tags/<tag> or limits/clients/<client>.
type limitValue struct {
	formatted
	limit.Rule
}

// limitFields are the fields of a limit that this version knows.
var limitFields = []string{"format", "rate", "quota", "blocked"}

func (s *Store) tagLimitKey(tag string) string       { return s.key("limits/tags/" + tag) }
func (s *Store) clientLimitKey(client string) string { return s.key("limits/clients/" + client) }

// Limits implements limit.Store.
func (s *Store) Limits(ctx context.Context) (rules limit.Rules, err error) {
	defer s.done(&err, "read limits")
	read, _, err := s.look(ctx, getAll(s.tagLimitKey("")), getAll(s.clientLimitKey("")))
	if err != nil {
		return limit.Rules{}, err
	}
	rules = limit.Rules{Tags: map[string]limit.Rule{}, Clients: map[string]limit.Rule{}}
	for _, of := range []struct {
		answer reply
		folder string
		into   map[string]limit.Rule
	}{{read[0], s.tagLimitKey(""), rules.Tags}, {read[1], s.clientLimitKey(""), rules.Clients}} {
		for _, kv := range found(of.answer) {
			var v limitValue
			if err := parse(string(kv.Key), kv.Value, &v); err != nil {
				return limit.Rules{}, err
			}
			of.into[strings.TrimPrefix(string(kv.Key), of.folder)] = v.Rule
		}
	}
	return rules, nil
}

// SetTagLimit implements limit.Store.
func (s *Store) SetTagLimit(ctx context.Context, tag string, c limit.Change) (r limit.Rule, err error) {
	if err := errors.Join(leaf.ValidateTag(tag), c.Validate()); err != nil {
		return r, err
	}
	defer s.done(&err, "limit tag %q", tag)
	return s.setLimit(ctx, s.tagLimitKey(tag), c, s.rowKey(tag))
}

// SetClientLimit implements limit.Store.
func (s *Store) SetClientLimit(ctx context.Context, client string, c limit.Change) (r limit.Rule, err error) {
	if err := errors.Join(limit.ValidateClient(client), c.Validate()); err != nil {
		return r, err
	}
	defer s.done(&err, "limit client %q", client)
	return s.setLimit(ctx, s.clientLimitKey(client), c, "")
}

// setLimit changes one limit. row is the key of the row that must be there, "" for none.
func (s *Store) setLimit(ctx context.Context, key string, c limit.Change, row string) (limit.Rule, error) {
	for {
		reads := []clientOp{get(key)}
		if row != "" {
			reads = append(reads, get(row))
		}
		read, _, err := s.look(ctx, reads...)
		if err != nil {
			return limit.Rule{}, err
		}
		var was limitValue
		text := textOf(read[0])
		if text != "" {
			if err := parse(key, []byte(text), &was); err != nil {
				return limit.Rule{}, err
			}
		}
		conditions := []clientCmp{is(key, text)}
		if row != "" {
			if textOf(read[1]) == "" {
				return limit.Rule{}, leaf.ErrUnknownTag
			}
			conditions = append(conditions, exists(row))
		}
		next := limitValue{Rule: c.ApplyTo(was.Rule)}
		writes := []clientOp{put(key, encodeOver(text, next, limitFields...))}
		if next.Rule == (limit.Rule{}) {
			writes = []clientOp{remove(key)}
		}
		done, _, err := s.write(ctx, conditions, writes, nil)
		if done || err != nil {
			return next.Rule, err
		}
	}
}
