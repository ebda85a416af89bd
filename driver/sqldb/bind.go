package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// Names of the rows of leaf_meta that hold a binding.
const (
	metaRule   = "tag_rule"
	metaStore  = "store_name"
	metaStores = "store_names" // of all databases of the rule, see namesOf

	metaDecision = "rule_decision" // of the command that recorded the rule, as namesOf
)

// segmentTables are the tables of segment mode that must keep what was written there: the rows, whose they are, the order and the
// period of their numbers, and what nodes have told of numbers, with the ends of rows that were deleted.
var segmentTables = []string{"leaf_alloc", "leaf_meta", "leaf_tag_option", "leaf_repair", "leaf_repair_node"}

// rowsElsewhere is what a table is refused for whose rows are on another server.
const rowsElsewhere = "its rows are on another server, which may neither keep them nor lock them for this node; " +
	"stop all nodes and Java servers that use the table, and then give all of them the URL of that server"

// stored is a binding as it is recorded.
type stored struct {
	segment.Binding
	decision string // of the command that recorded it, "" if a node or a version before did
}

// Bind implements segment.Store. It records a binding without a rule where leaf_meta is there
// and may be written, so that a node which takes the database for one of several is refused; but
// the only database of a node needs no table of ours. A binding with a rule is recorded by a
// RuleChange alone, which knows all databases of the rule: a node that finds a database without a
// record cannot know whether its rows are copies of rows in a database that does not answer.
func (s *Store) Bind(ctx context.Context, b segment.Binding) (err error) {
	return s.bind(ctx, b, true)
}

// Verify is Bind without recording or making anything: a command that manages rows need not
// claim the database for its own division of tags, and a mistyped path is no new database.
func (s *Store) Verify(ctx context.Context, b segment.Binding) error { return s.bind(ctx, b, false) }

func (s *Store) bind(ctx context.Context, b segment.Binding, record bool) (err error) {
	defer s.done(ctx, time.Now(), &err, "bind %s", s.Redacted())
	if s.dialect.embedded && record && s.isUnmade() {
		if _, err := s.createTables(ctx); err != nil {
			return err
		}
	}
	l, err := s.detect(ctx)
	if err != nil {
		return err
	}
	if err := s.dialect.check(ctx, s, segmentTables...); err != nil {
		return err
	}
	if err := s.checkKey(ctx); err != nil {
		return err
	}
	switch {
	case l.meta:
		s.identity.readable.Store(true)
		if err := s.bindCluster(ctx, record); err != nil {
			return err
		}
		return s.bindRule(ctx, b, record)
	case b.Rule != "":
		return fmt.Errorf("several databases need the table leaf_meta: %w", ErrUnbound)
	case s.identity.readable.Load():
		return s.schemaError(s.metaGone(), nil)
	}
	return nil
}

// checkKey refuses a table without a key that has two rows of one tag: each would
// hand out the other's numbers.
func (s *Store) checkKey(ctx context.Context) error {
	var tag string
	ok, err := queryRow(ctx, s.read, "SELECT biz_tag FROM leaf_alloc GROUP BY biz_tag HAVING COUNT(*) > 1 LIMIT 1", nil, []any{&tag})
	if err != nil {
		return fmt.Errorf("look for tags with two rows: %w", err)
	}
	if ok {
		return fmt.Errorf("%w: leaf_alloc has more than one row for tag %q; remove all but the one with the highest max_id and make biz_tag the primary key", segment.ErrSchema, tag)
	}
	return nil
}

// bindCluster comes before bindRule: nothing is recorded in the database of another
// cluster. When the ID cannot be recorded, the node serves all the same.
func (s *Store) bindCluster(ctx context.Context, record bool) error {
	found, err := s.storedCluster(ctx, s.read)
	if err == nil && found == "" && record {
		if found, err = s.putCluster(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Debug("the cluster's ID could not be written to leaf_meta", "store", s.Redacted(), "error", err)
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return s.identity.settle(found)
}

func (s *Store) bindRule(ctx context.Context, b segment.Binding, record bool) error {
	found, err := s.binding(ctx, s.read, s.sql.meta)
	if err == nil && found == nil && record && b.Rule == "" {
		err = s.transact(ctx, func(conn *sql.Conn) error { return s.insertBinding(ctx, conn, stored{Binding: b}) })
		switch {
		case err == nil, s.dialect.kindOf(err) == kindDuplicate: // another node was faster
			found, err = s.binding(ctx, s.write, s.sql.meta)
		case ctx.Err() == nil:
			s.cfg.Logger.Debug("that this is the only database could not be written to leaf_meta", "store", s.Redacted(), "error", err)
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if err := checkBinding(b, found.of()); err != nil {
		return err
	}
	if record && found != nil && found.Stores == "" && b.Rule != "" {
		s.addNames(ctx, *found, b)
	}
	s.identity.binding.Store(&b)
	return nil
}

// addNames completes a binding that a version before wrote. Without it nodes serve; only a
// change of the rule needs it.
func (s *Store) addNames(ctx context.Context, found stored, b segment.Binding) {
	if err := s.replaceBinding(ctx, &found, &stored{b, found.decision}); err != nil {
		s.cfg.Logger.Debug("the names of the rule's databases could not be written to leaf_meta", "store", s.Redacted(), "error", err)
	}
}

// insertBinding writes a binding in a transaction.
func (s *Store) insertBinding(ctx context.Context, conn *sql.Conn, b stored) error {
	_, err := conn.ExecContext(ctx, s.sql.insertMeta, metaRule, b.Rule, metaStore, b.Store)
	if err == nil && b.Stores != "" {
		_, err = conn.ExecContext(ctx, s.sql.insertName, metaStores, namesOf(b.Rule)+b.Stores)
	}
	if err == nil && b.decision != "" {
		_, err = conn.ExecContext(ctx, s.sql.insertName, metaDecision, namesOf(b.Rule)+b.decision)
	}
	return err
}

// of is the binding, nil if there is none.
func (s *stored) of() *segment.Binding {
	if s == nil {
		return nil
	}
	return &s.Binding
}

// namesOf returns the prefix of the names that are recorded with a rule. An earlier version of Leaf
// does not know the names. When it records another rule, the names of the rule before stay, and the
// prefix shows that they do not belong to it.
func namesOf(rule string) string {
	sum := sha256.Sum256([]byte(rule))
	return hex.EncodeToString(sum[:4]) + ":"
}

// binding returns the recorded binding, nil if there is none. query is meta, or lockMeta.
func (s *Store) binding(ctx context.Context, q querier, query string) (*stored, error) {
	var found *stored
	var b stored
	parts := map[string]*string{metaRule: &b.Rule, metaStore: &b.Store, metaStores: &b.Stores, metaDecision: &b.decision}
	err := eachRow(ctx, q, query, nil, func(rows *sql.Rows) error {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		if part := parts[name]; part != nil {
			*part, found = value, &b
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, part := range []*string{&b.Stores, &b.decision} {
		value, ok := strings.CutPrefix(*part, namesOf(b.Rule))
		if *part = ""; ok {
			*part = value
		}
	}
	return found, nil
}
