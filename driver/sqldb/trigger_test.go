package sqldb_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestTriggerThatChangesTheNumber: a trigger of the table keeps max_id at 110, as one that is to
// protect a narrow column does. No number is given twice, and nothing says that it moved the row
// where it did not: after a loss, the numbers that an administrator types are all that protects.
func TestTriggerThatChangesTheNumber(t *testing.T) {
	const mysqlTrigger, mysqlInsert = "CREATE TRIGGER most BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.max_id = LEAST(NEW.max_id, 110)",
		"CREATE TRIGGER least BEFORE INSERT ON leaf_alloc FOR EACH ROW SET NEW.max_id = LEAST(NEW.max_id, 110)"
	const sqliteKeep = " ON leaf_alloc WHEN NEW.max_id > 110 BEGIN UPDATE leaf_alloc SET max_id = 110 WHERE biz_tag = NEW.biz_tag; END"
	for name, c := range map[string]struct {
		database func(t testing.TB) server.Database // nil: SQLite
		trigger  []string
	}{
		"mariadb": {server.MariaDB, []string{mysqlTrigger, mysqlInsert}},
		"mysql":   {server.MySQL, []string{mysqlTrigger, mysqlInsert}},
		"postgres": {server.Postgres, []string{
			"CREATE FUNCTION most() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.max_id := LEAST(NEW.max_id, 110); RETURN NEW; END $$",
			"CREATE TRIGGER most BEFORE INSERT OR UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION most()",
		}},
		"postgres, behind the statement": {server.Postgres, []string{
			"CREATE FUNCTION most() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE leaf_alloc SET max_id = 110 WHERE biz_tag = NEW.biz_tag AND max_id > 110; RETURN NULL; END $$",
			"CREATE TRIGGER most AFTER INSERT OR UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION most()",
		}},
		"sqlite": {nil, []string{"CREATE TRIGGER most AFTER UPDATE OF max_id" + sqliteKeep, "CREATE TRIGGER least AFTER INSERT" + sqliteKeep}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, admin := withTrigger(t, c.database, 100, c.trigger)
			if res, err := s.Reserve(t.Context(), request(7)); err != nil || res.Range.Lo != 100 || res.Range.Hi != 107 {
				t.Fatalf("Reserve below the trigger's number = %v, %v; want [100, 107)", res, err)
			}
			for _, step := range []int64{7, 7, 0} {
				// An old time, or the second UPDATE of one second changes no row on MySQL.
				execAll(t, admin, "UPDATE leaf_alloc SET update_time = '2020-01-01'")
				if res, err := s.Reserve(t.Context(), request(step)); err == nil {
					t.Errorf("Reserve with step %d = %v although the trigger keeps max_id at 110", step, res)
				}
			}
			execAll(t, admin, "UPDATE leaf_alloc SET update_time = '2020-01-01'")
			if maxID, err := s.Raise(t.Context(), "a", 500); err == nil {
				t.Errorf("Raise = %d although the trigger keeps max_id at 110", maxID)
			}
			if err := s.Update(t.Context(), "a", segment.Change{MaxID: new(int64(500))}); err == nil {
				t.Error("Update of max_id to 500 succeeds although the trigger keeps it at 110")
			}
			if err := s.Create(t.Context(), segment.NewRow{Tag: "b", Start: 500, Step: 7}); err == nil {
				t.Error("Create with start 500 succeeds although the trigger keeps max_id at 110")
			}
			if row, err := s.Lookup(t.Context(), "a"); err != nil || row.MaxID > 110 {
				t.Errorf("Lookup = %+v, %v; the trigger does nothing, so the test proves nothing", row, err)
			}
		})
	}
}

// withTrigger returns a store with a trigger and with the tag a, of step 7, in a new database, nil for SQLite.
func withTrigger(t *testing.T, database func(t testing.TB) server.Database, maxID int64, trigger []string) (s *sqldb.Store, admin *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leaf.db")
	url, admin := "sqlite:"+path, raw(t, path)
	if database != nil {
		d := database(t)
		url, admin = d.URL(), d.Open(t)
	}
	applySchema(t, url)
	execAll(t, admin, append(trigger, fmt.Sprintf("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', %d, 7)", maxID))...)
	return open(t, url), admin
}

// TestTriggerThatAligns: a trigger of the table rounds max_id down to sevens. Loads of seven IDs do not notice. A return of
// four IDs would take the row below the three that were issued: it fails, and the row stays.
func TestTriggerThatAligns(t *testing.T) {
	const mysqlTrigger = "CREATE TRIGGER aligned BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.max_id = NEW.max_id - NEW.max_id % 7"
	for name, c := range map[string]struct {
		database func(t testing.TB) server.Database // nil: SQLite
		trigger  []string
	}{
		"mariadb": {server.MariaDB, []string{mysqlTrigger}},
		"mysql":   {server.MySQL, []string{mysqlTrigger}},
		"postgres": {server.Postgres, []string{
			"CREATE FUNCTION aligned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.max_id := NEW.max_id - NEW.max_id % 7; RETURN NEW; END $$",
			"CREATE TRIGGER aligned BEFORE UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION aligned()",
		}},
		"sqlite": {nil, []string{"CREATE TRIGGER aligned AFTER UPDATE OF max_id ON leaf_alloc WHEN NEW.max_id % 7 <> 0 " +
			"BEGIN UPDATE leaf_alloc SET max_id = NEW.max_id - NEW.max_id % 7 WHERE biz_tag = NEW.biz_tag; END"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := withTrigger(t, c.database, 105, c.trigger)
			if res, err := s.Reserve(t.Context(), request(7)); err != nil || res.Range.Lo != 105 || res.Range.Hi != 112 {
				t.Fatalf("Reserve = %v, %v; want [105, 112)", res, err)
			}
			if err := s.ReturnUnused(t.Context(), "a", 112, 108); err == nil {
				t.Error("ReturnUnused succeeds although the trigger wrote another number")
			}
			if row, err := s.Lookup(t.Context(), "a"); err != nil || row.MaxID < 108 {
				t.Errorf("Lookup = %+v, %v; want no max_id below 108, up to where IDs were issued", row, err)
			}
		})
	}
}

// TestRuleThatAddsAStatement: PostgreSQL refuses the statement of a load where a rule of the table
// makes two of it. The load then takes a transaction of several statements.
func TestRuleThatAddsAStatement(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	applySchema(t, d.URL())
	execAll(t, d.Open(t), "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 100, 7)", "CREATE TABLE seen (tag text, max_id bigint)",
		"CREATE RULE seen AS ON UPDATE TO leaf_alloc DO ALSO INSERT INTO seen VALUES (NEW.biz_tag, NEW.max_id)")
	s, next := open(t, d.URL()), int64(100)
	for _, step := range []int64{7, 7, 0} {
		res, err := s.Reserve(t.Context(), request(step))
		if err != nil || res.Range.Lo != next || res.Range.Hi != next+7 {
			t.Fatalf("Reserve with step %d = %v, %v; want 7 IDs from %d", step, res, err, next)
		}
		next = res.Range.Hi
	}
}
