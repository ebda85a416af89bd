package app_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// runRule is a command that makes so many steps and is killed, unless it has ended.
func runRule(t *testing.T, c config.Config, change app.RuleChange, steps int) error {
	t.Helper()
	command, err := app.NewRuleCommand(c, change)
	if err != nil {
		t.Fatal(err)
	}
	defer command.Close()
	for done := false; !done && steps > 0; steps-- {
		if done, err = command.Step(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

// withC is a configuration with a new first database c, which has the tag user.
func withC(t *testing.T, old config.Config, url string) config.Config {
	t.Helper()
	c := old
	c.DataDir, c.TagRules = shortDir(t), []string{"user*=c"}
	c.Stores = append([]string{"c=" + url}, old.Stores...)
	return c
}

// TestDatabaseThatWasLeftOutTakesAPlace: a command is killed after it has recorded its rule in a
// database, from which nodes issue since. When it is run again, the URL of that database leads to
// another one, which has a record as well: an earlier rule left it out.
func TestDatabaseThatWasLeftOutTakesAPlace(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, old := divided(t)
	with := func(name string) config.Config { return withC(t, old, "sqlite:"+filepath.Join(dir, name)) }
	for _, name := range []string{"first.db", "second.db"} {
		if _, err := app.ApplySchema(t.Context(), with(name), app.Options{}, &app.RuleChange{}); err != nil {
			t.Fatal(err)
		}
		if _, err := app.ApplySchema(t.Context(), old, app.Options{}, &app.RuleChange{LeaveOut: []string{"sqlite:" + filepath.Join(dir, name)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.InterruptRuleChange(t.Context(), with("first.db"), app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	_, err := app.ApplySchema(t.Context(), with("second.db"), app.Options{}, &app.RuleChange{})
	wantConflict(t, err, `store "c"`, "another database than that command had")
	if _, err := app.ApplySchema(t.Context(), with("first.db"), app.Options{}, &app.RuleChange{}); err != nil {
		t.Error(err)
	}
}

// TestTwoDatabasesOfOneName: a command is killed after it has decided in a new database, and is run
// again with another one of the same name. The first one then says that the command must be run with
// its rule. That does not make it the second database of its name that nodes load from.
func TestTwoDatabasesOfOneName(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for name, last := range map[string]bool{"before the others": false, "behind the others": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, old := divided(t)
			url := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
			with := func(name string) config.Config {
				c := withC(t, old, url(name))
				if last {
					c.Stores = append(c.Stores[1:], c.Stores[0])
				}
				return c
			}
			back := old
			back.DataDir = shortDir(t)
			applyTables(t, url("first.db"))
			if err := runRule(t, with("first.db"), app.RuleChange{}, 3+3+3); err != nil { // those without a record are decided first
				t.Fatal(err)
			}
			if _, err := app.ApplySchema(t.Context(), with("second.db"), app.Options{}, &app.RuleChange{}); err != nil {
				t.Fatal(err)
			}
			_, err := app.ApplySchema(t.Context(), old, app.Options{}, &app.RuleChange{LeaveOut: []string{url("first.db"), url("second.db")}})
			wantConflict(t, err, "run it again, with that rule")
			_, err = app.ApplySchema(t.Context(), with("first.db"), app.Options{}, &app.RuleChange{})
			wantConflict(t, err, `store "c"`)
			if _, stop := start(t, with("second.db")); true { // the rule is still recorded
				stop()
			}
			for _, next := range []struct {
				config.Config
				leaveOut []string
			}{{with("first.db"), []string{url("second.db")}}, {back, []string{url("first.db"), url("second.db")}}} {
				if _, err := app.ApplySchema(t.Context(), next.Config, app.Options{}, &app.RuleChange{LeaveOut: next.leaveOut}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestCommandBesideTwoDatabasesOfOneName is TestTwoDatabasesOfOneName with a second command that is
// killed as well, after it has recorded the rule in its database of the name.
func TestCommandBesideTwoDatabasesOfOneName(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, old := divided(t)
	with := func(name string) config.Config { return withC(t, old, "sqlite:"+filepath.Join(dir, name)) }
	applyTables(t, "sqlite:"+filepath.Join(dir, "first.db"))
	if err := runRule(t, with("first.db"), app.RuleChange{}, 3+3+3); err != nil {
		t.Fatal(err)
	}
	if err := app.InterruptRuleChange(t.Context(), with("second.db"), app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	_, err := app.ApplySchema(t.Context(), with("first.db"), app.Options{}, &app.RuleChange{})
	wantConflict(t, err, `store "c"`)
	if _, err := app.ApplySchema(t.Context(), with("second.db"), app.Options{}, &app.RuleChange{}); err != nil {
		t.Error(err)
	}
}

// TestRuleThatADatabaseHadBefore: the table leaf_meta of one database is restored from a backup, and
// says the rule that the next command records. That is no sign that an earlier command has closed
// all databases, so the command does not end without them.
func TestRuleThatADatabaseHadBefore(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, c := divided(t)
	first := c
	first.DataDir, first.Stores = shortDir(t), []string{c.Stores[1], c.Stores[0]}
	if _, err := app.ApplySchema(t.Context(), first, app.Options{}, &app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	a := openFile(t, filepath.Join(dir, "a.db"))
	execute(t, a, "CREATE TABLE backup AS SELECT * FROM leaf_meta")
	second := c
	second.DataDir, second.Stores, second.TagRules = shortDir(t), []string{c.Stores[1], "c=sqlite:" + filepath.Join(dir, "c.db")}, []string{"order*=c"}
	if _, err := app.ApplySchema(t.Context(), second, app.Options{}, &app.RuleChange{LeaveOut: []string{storeURL(c.Stores[0])}}); err != nil {
		t.Fatal(err)
	}
	execute(t, a, "DELETE FROM leaf_meta")
	execute(t, a, "INSERT INTO leaf_meta SELECT * FROM backup")
	back := app.RuleChange{LeaveOut: []string{storeURL(second.Stores[1])}, Lost: []string{"b"}}
	if err := runRule(t, first, back, 3+3+3+1); err != nil { // b is decided
		t.Fatal(err)
	}
	_, err := app.ApplySchema(t.Context(), first, app.Options{}, &app.RuleChange{Lost: []string{"b"}})
	wantConflict(t, err, `tags are also in store "c"`)
	if _, err := app.ApplySchema(t.Context(), first, app.Options{}, &back); err != nil {
		t.Error(err)
	}
}

// applyTables makes the tables of a database.
func applyTables(t *testing.T, url string) {
	t.Helper()
	s, err := sqldb.Open(url, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTwoCommandsLeaveDatabasesOut: of two commands with one rule, the second one has left a database
// out, and the first one finds that done, and is refused in the next database. It does not open the
// database again: the second command goes on, and records the rule.
func TestTwoCommandsLeaveDatabasesOut(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, c := divided(t)
	old := c
	old.DataDir, old.Stores = shortDir(t), append(old.Stores, "c=sqlite:"+filepath.Join(dir, "c.db"))
	if _, err := app.ApplySchema(t.Context(), old, app.Options{}, &app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	var commands [2]*app.RuleCommand
	for i := range commands {
		fresh := c
		fresh.DataDir, fresh.Stores, fresh.TagRules = shortDir(t), []string{storeURL(old.Stores[0])}, nil
		command, err := app.NewRuleCommand(fresh, app.RuleChange{LeaveOut: []string{storeURL(old.Stores[1]), storeURL(old.Stores[2])}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Close() })
		commands[i] = command
	}
	step := func(i, steps int) (err error) {
		for done := false; !done && steps > 0; steps-- {
			if done, err = commands[i].Step(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}
	const decided = 3 + 3 + 6 // in all but those that are left out
	for i, steps := range []int{decided, decided + 2} {
		if err := step(i, steps); err != nil {
			t.Fatal(err)
		}
	}
	wantConflict(t, step(0, 100), "another command")
	if err := step(1, 100); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"b.db", "c.db"} {
		var rule string
		if err := openFile(t, filepath.Join(dir, name)).QueryRowContext(t.Context(), "SELECT value FROM leaf_meta WHERE name = 'tag_rule'").Scan(&rule); err != nil || !strings.HasPrefix(rule, "none: a newer rule leaves the database out") {
			t.Errorf("%s has the rule %q, %v; want that it is left out", name, rule, err)
		}
	}
}

// TestCommandKilledWhileItPutsTheRuleBack: a command has decided in all databases and is refused then.
// Wherever it is killed while it puts the rule back, it can be run again: nothing has to be declared
// lost.
func TestCommandKilledWhileItPutsTheRuleBack(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, old := divided(t)
	fresh := old
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=c"}
	fresh.Stores = append([]string{"c=sqlite:" + filepath.Join(dir, "c.db")}, old.Stores...)
	applyTables(t, storeURL(fresh.Stores[0]))
	for databases := range len(fresh.Stores) + 1 {
		command, err := app.NewRuleCommand(fresh, app.RuleChange{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 + 3 + 6 {
			if _, err := command.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(command.UndoOnly(t.Context(), databases), command.Close()); err != nil {
			t.Fatal(err)
		}
		if err := runRule(t, fresh, app.RuleChange{}, 100); err != nil {
			t.Fatalf("after the rule was put back in %d databases: %v", databases, err)
		}
		if err := runRule(t, old, app.RuleChange{LeaveOut: []string{storeURL(fresh.Stores[0])}}, 100); err != nil {
			t.Fatal(err)
		}
		execute(t, openFile(t, filepath.Join(dir, "c.db")), "DELETE FROM leaf_meta WHERE name <> 'cluster_id'") // as a new database
	}
}

// TestRuleIsPutBackBesideACommand: while a command puts the rule back, another one with its rule has
// taken over one of the databases in which it is decided. That one finds it decided in all that come
// before, too, and ends well.
func TestRuleIsPutBackBesideACommand(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, old := divided(t)
	fresh := old
	fresh.TagRules = []string{"user*=c"}
	fresh.Stores = []string{old.Stores[1], old.Stores[0], "c=sqlite:" + filepath.Join(dir, "c.db")} // c is decided first
	applyTables(t, storeURL(fresh.Stores[2]))
	var commands [2]*app.RuleCommand
	for i, steps := range []int{3 + 3 + 6, 1} {
		fresh.DataDir = shortDir(t)
		command, err := app.NewRuleCommand(fresh, app.RuleChange{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Close() })
		for range steps {
			if _, err := command.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		commands[i] = command
	}
	wantConflict(t, commands[0].UndoOnly(t.Context(), 3), "another command")
	for done := false; !done; {
		var err error
		if done, err = commands[1].Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
