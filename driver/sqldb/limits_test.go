package sqldb_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestLimitsArriveWhileNodesRun is the rolling upgrade: nodes run on the tables of an
// older program, another one adds the columns, and older statements go on working.
func TestLimitsArriveWhileNodesRun(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			db := rawDatabase(t, url)
			old := oldOptions
			if c.name == "sqlite" {
				old = strings.NewReplacer("varchar(128)", "TEXT", "boolean NOT NULL DEFAULT false", "INTEGER NOT NULL DEFAULT 0", "timestamp", "TEXT", " int ", " INTEGER ").Replace(old) + " STRICT"
			}
			const allocTable = "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL," +
				" description varchar(256), update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)"
			const insertOptions = "INSERT INTO leaf_tag_option (biz_tag, min_step, max_step, fixed_step) VALUES "
			execAll(t, db, allocTable, old,
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 7), ('b', 1, 7)", insertOptions+"('a', 3, 9, (1 = 1))")
			ctx := t.Context()
			node := open(t, url)
			row, err := node.Lookup(ctx, "a")
			if want := (segment.Options{MinStep: 3, MaxStep: 9, FixedStep: true}); err != nil || row.Options != want {
				t.Fatalf("Lookup on old tables = %+v, %v; want the options %+v", row, err, want)
			}
			if rules, err := node.Limits(ctx); err != nil || len(rules.Tags)+len(rules.Clients) != 0 {
				t.Fatalf("Limits on old tables = %v, %v; want none", rules, err)
			}
			for _, err := range []error{second(node.SetTagLimit(ctx, "a", limit.ChangeTo(limit.Rule{Rate: 5}))), second(node.SetClientLimit(ctx, "x", limit.ChangeTo(limit.Rule{Rate: 5})))} {
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf schema apply") {
					t.Errorf("a limit on old tables: %v; want ErrSchema that names leaf schema apply", err)
				}
			}
			if err := node.Update(ctx, "b", segment.Change{MinStep: new(int64(5))}); err != nil {
				t.Errorf("Update of options on old tables: %v", err)
			}

			errs := make(chan error)
			for range 4 { // nodes that start together apply together
				s := open(t, url)
				go func() { _, err := s.ApplySchema(ctx); errs <- err }()
			}
			for range 4 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			again, err := open(t, url).ApplySchema(ctx)
			if diff := gocmp.Diff(report(len(tables)), again); err != nil || diff != "" {
				t.Errorf("ApplySchema again: %v (-want +got):\n%s", err, diff)
			}

			// A limit stays that a node sets which has seen the new columns.
			blocked := limit.Rule{Blocked: true}
			err = second(open(t, url).SetTagLimit(ctx, "b", limit.ChangeTo(blocked)))
			err2 := node.Update(ctx, "b", segment.Change{MinStep: new(int64(6))})
			if errors.Join(err, err2) != nil {
				t.Errorf("limit, and change by a store that saw the old tables: %v, %v", err, err2)
			}
			if err := second(node.SetTagLimit(ctx, "a", limit.ChangeTo(limit.Rule{Rate: 5}))); err != nil {
				t.Errorf("SetTagLimit on a store that saw the old tables: %v", err)
			}
			if err := second(node.SetClientLimit(ctx, "x", limit.ChangeTo(limit.Rule{Blocked: true}))); err != nil {
				t.Errorf("SetClientLimit on a store that saw the old tables: %v", err)
			}
			want := limit.Rules{Tags: map[string]limit.Rule{"a": {Rate: 5}, "b": blocked}, Clients: map[string]limit.Rule{"x": {Blocked: true}}}
			if got, err := node.Limits(ctx); err != nil || !gocmp.Equal(want, got) {
				t.Errorf("Limits = %+v, %v; want %+v", got, err, want)
			}
			// What an older program writes, it reads back; its tags have no limit.
			delete(want.Tags, "b")
			execAll(t, db, "DELETE FROM leaf_tag_option WHERE biz_tag = 'b'", insertOptions+"('b', 2, 8, (1 = 0))")
			if row, err := node.Lookup(ctx, "b"); err != nil || row.Options != (segment.Options{MinStep: 2, MaxStep: 8}) {
				t.Errorf("Lookup = %+v, %v; want the options of an older program", row, err)
			}
			if got, err := node.Limits(ctx); err != nil || !gocmp.Equal(want, got) {
				t.Errorf("Limits = %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

// TestOptionsOfAnotherTag: leaf_alloc tells two tags apart that are one to leaf_tag_option. What
// is done to one of them changes nothing of the other.
func TestOptionsOfAnotherTag(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	s, db := open(t, d.URL()), d.Open(t)
	noPad := "utf8mb4_nopad_bin"
	if !isMariaDB(t, db) {
		noPad = "utf8mb4_0900_bin"
	}
	execAll(t, db, "CREATE TABLE leaf_alloc (biz_tag varchar(128) CHARACTER SET utf8mb4 COLLATE "+noPad+" PRIMARY KEY,"+
		" max_id bigint NOT NULL DEFAULT 1, step int NOT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)")
	ctx := t.Context()
	want := segment.Options{MinStep: 3}
	_, err := s.ApplySchema(ctx)
	err = errors.Join(err, s.Create(ctx, segment.NewRow{Tag: "a", Start: 1, Step: 7, Options: want}), s.Create(ctx, segment.NewRow{Tag: "a ", Start: 1, Step: 7}),
		second(s.SetTagLimit(ctx, "a", limit.ChangeTo(limit.Rule{Blocked: true}))))
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"options": s.Update(ctx, "a ", segment.Change{MinStep: new(int64(5))}),
		"a limit": second(s.SetTagLimit(ctx, "a ", limit.ChangeTo(limit.Rule{Rate: 5}))),
	} {
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), `the tag "a"`) {
			t.Errorf("%s for a name that leaf_tag_option takes for another: %v; want ErrConflict that names it", what, err)
		}
	}
	if err := s.Delete(ctx, "a "); err != nil {
		t.Fatal(err)
	}
	row, err := s.Lookup(ctx, "a")
	rules, err2 := s.Limits(ctx)
	if errors.Join(err, err2) != nil || row.Options != want || !rules.Tags["a"].Blocked {
		t.Errorf("the other tag has %+v, limits %+v, %v, %v; want the options %+v, blocked", row, rules, err, err2, want)
	}
}

func second[T any](_ T, err error) error { return err }

// TestColumnsAreReported, one line each.
func TestColumnsAreReported(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	execAll(t, d.Open(t), javaTable("`description` varchar(256) DEFAULT NULL, "), oldOptions, "ALTER TABLE leaf_tag_option ADD COLUMN quota bigint NOT NULL DEFAULT 0")
	got, err := open(t, d.URL()).ApplySchema(t.Context())
	want := []string{"table leaf_alloc exists, left as it is", "table leaf_tag_option: column format added", "table leaf_tag_option: column id_order added", "table leaf_tag_option: column period added", "table leaf_tag_option: column period_zone added", "table leaf_tag_option: column rate_limit added", "table leaf_tag_option: column blocked added"}
	if len(got) != len(tables)+6 || !gocmp.Equal(want, got[:7]) || err != nil {
		t.Errorf("ApplySchema = %q, %v; want it to begin with %q", got, err, want)
	}
}

// TestOptionArrivesInAnOlderTable: the schema has each column once, also for a table that is
// there already.
func TestOptionArrivesInAnOlderTable(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			_, err := open(t, url).ApplySchema(t.Context())
			execAll(t, rawDatabase(t, url), "ALTER TABLE leaf_tag_option DROP COLUMN max_step")
			s := open(t, url)
			got, err2 := s.ApplySchema(t.Context())
			if want := "table leaf_tag_option: column max_step added"; errors.Join(err, err2) != nil || !slices.Contains(got, want) {
				t.Fatalf("ApplySchema = %q, %v, %v; want %q among them", got, err, err2, want)
			}
			row := segment.NewRow{Tag: "a", Start: 1, Step: 5, Options: segment.Options{MinStep: 2, MaxStep: 9, FixedStep: true}}
			if err := s.Create(t.Context(), row); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Lookup(t.Context(), "a"); err != nil || got.Options != row.Options {
				t.Errorf("Lookup = %+v, %v; want the options %+v", got, err, row.Options)
			}
		})
	}
}

// rawDatabase opens a database past the store.
func rawDatabase(t *testing.T, url string) *sql.DB {
	t.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return raw(t, path)
	}
	d, err := server.ParseDatabase(url)
	if err != nil {
		t.Fatal(err)
	}
	return d.Open(t)
}
