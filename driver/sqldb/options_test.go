package sqldb_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// TestOptionsArriveWhileNodesRun is the rolling upgrade to a program that has one option more:
// its nodes read the options that the table has, until leaf schema apply adds the column.
func TestOptionsArriveWhileNodesRun(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			old := strings.Replace(oldOptions, " fixed_step boolean NOT NULL DEFAULT false,", "", 1)
			execAll(t, rawDatabase(t, url), "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,"+
				" update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)", old,
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 7), ('b', 1, 7)", "INSERT INTO leaf_tag_option (biz_tag, min_step, max_step) VALUES ('a', 3, 9)")
			ctx := t.Context()
			node := open(t, url)
			check := func(want segment.Options) {
				t.Helper()
				row, err := node.Lookup(ctx, "a")
				if err != nil || row.Options != want {
					t.Errorf("Lookup = %+v, %v; want the options %+v", row, err, want)
				}
				for name, read := range map[string]func() ([]segment.Row, error){
					"Rows":      func() ([]segment.Row, error) { return node.Rows(ctx) },
					"RowsAfter": func() ([]segment.Row, error) { return node.RowsAfter(ctx, "", 5) },
				} {
					rows, err := read()
					i := slices.IndexFunc(rows, func(r segment.Row) bool { return r.Tag == "a" })
					if err != nil || len(rows) != 2 || i < 0 || rows[i].Options != want {
						t.Errorf("%s = %+v, %v; want the options %+v", name, rows, err, want)
					}
				}
			}
			check(segment.Options{MinStep: 3, MaxStep: 9})
			if err := node.Update(ctx, "a", segment.Change{MinStep: new(int64(4))}); err != nil {
				t.Errorf("Update of an option that the table has: %v", err)
			}
			check(segment.Options{MinStep: 4, MaxStep: 9})
			fixed, formatted := segment.Change{FixedStep: new(true)}, segment.Change{Format: new("INV-{seq:08}")}
			if err := node.Update(ctx, "a", formatted); !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "column format") {
				t.Errorf("Update of a text that the table lacks: %v; want ErrSchema that names it", err)
			}
			for name, err := range map[string]error{
				"Update": node.Update(ctx, "a", fixed),
				"Create": node.Create(ctx, segment.NewRow{Tag: "c", Start: 1, Step: 7, Options: segment.Options{FixedStep: true}}),
			} {
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "fixed_step") || !strings.Contains(err.Error(), "leaf schema apply") {
					t.Errorf("%s of an option that the table lacks: %v; want ErrSchema that names it and leaf schema apply", name, err)
				}
			}
			check(segment.Options{MinStep: 4, MaxStep: 9})

			if _, err := open(t, url).ApplySchema(ctx); err != nil {
				t.Fatal(err)
			}
			if err := node.Update(ctx, "a", fixed); err != nil {
				t.Errorf("Update by a store that saw the old table: %v", err)
			}
			check(segment.Options{MinStep: 4, MaxStep: 9, FixedStep: true})
			if err := node.Update(ctx, "a", formatted); err != nil {
				t.Errorf("Update of a text that was added: %v", err)
			}
			check(segment.Options{MinStep: 4, MaxStep: 9, FixedStep: true, Format: "INV-{seq:08}"})
		})
	}
}

// TestTagIsCreatedDuringAList: a node that lists all tags while one is created sees it with its options, or not
// at all. Without its order it would issue a strict tag beside the owner until the next list.
func TestTagIsCreatedDuringAList(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 3; at++ {
		url := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
		other := open(t, url)
		bind(t, other)
		var statements int
		node := openThrough(t, url, (&seam{trip: func(call string, after bool) {
			if after || !strings.HasPrefix(call, "Query SELECT biz_tag") {
				return
			}
			if statements++; statements == at {
				err := other.Create(t.Context(), segment.NewRow{Tag: "order", Start: 1, Step: 10, Options: segment.Options{Order: segment.OrderStrict}})
				if err != nil {
					t.Error(err)
				}
			}
		}}).below)
		for list := range 2 {
			rows, err := node.Rows(t.Context())
			if err != nil || len(rows) < list || len(rows) > 0 && !rows[0].Options.Strict() {
				t.Errorf("created before statement %d, list %d: %+v, %v", at, list, rows, err)
			}
		}
		if statements != 6 {
			t.Errorf("%d statements in two lists; the test knows 3 in each", statements)
		}
	}
}

// TestTagIsDeletedDuringAReading: a tag in strict order is deleted, and made again in strict order, around each statement of a
// reading. The reading finds no tag, or one in strict order: the node would issue another one beside the owner.
func TestTagIsDeletedDuringAReading(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(s *sqldb.Store) ([]segment.Row, error){
		"Rows": func(s *sqldb.Store) ([]segment.Row, error) { return s.Rows(t.Context()) },
		"Lookup": func(s *sqldb.Store) ([]segment.Row, error) {
			row, err := s.Lookup(t.Context(), "order")
			if errors.Is(err, leaf.ErrUnknownTag) {
				return nil, nil
			}
			return []segment.Row{row}, err
		},
	} {
		url := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
		other := open(t, url)
		bind(t, other)
		strict := segment.NewRow{Tag: "order", Start: 1, Step: 10, Options: segment.Options{Order: segment.OrderStrict}}
		if err := other.Create(t.Context(), strict); err != nil {
			t.Fatal(err)
		}
		statements, at := 0, 0
		node := openThrough(t, url, (&seam{trip: func(call string, after bool) {
			if !strings.HasPrefix(call, "Query SELECT biz_tag") {
				return
			}
			if !after {
				statements++
			}
			if statements != at {
				return
			}
			change := func() error { return other.Delete(t.Context(), "order") }
			if after {
				change = func() error { return other.Create(t.Context(), strict) }
			}
			if err := change(); err != nil {
				t.Error(err)
			}
		}}).below)
		most := 0
		for at = 0; at <= most; at++ {
			statements = 0
			rows, err := read(node)
			most = max(most, statements)
			if err != nil || len(rows) > 1 || len(rows) == 1 && !rows[0].Options.Strict() || at == 0 && len(rows) == 0 {
				t.Errorf("%s, deleted before statement %d: %+v, %v", name, at, rows, err)
			}
		}
		if most < 2 {
			t.Errorf("%s has %d statements; the test is of no use", name, most)
		}
	}
}
