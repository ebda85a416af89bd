package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// leaveB is copied, whose node has stopped, with a configuration that has only the database a.
func leaveB(t *testing.T) (old, fresh config.Config, b string, raise func(maxID int64), issued map[string]bool) {
	t.Helper()
	c, _, stop, a, _, issued := copied(t)
	stop()
	fresh = c
	fresh.DataDir, fresh.Stores, fresh.TagRules = shortDir(t), []string{storeURL(c.Stores[0])}, nil
	raise = func(maxID int64) { execute(t, a, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'user'", maxID) }
	return c, fresh, storeURL(c.Stores[1]), raise, issued
}

// storeURL is a store without its name.
func storeURL(store string) string { return config.CutStoreName(store).URL }

// wantConflict fails unless err is a conflict with all of texts.
func wantConflict(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("%v; want a conflict", err)
	}
	for _, text := range texts {
		if !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%v; want that it says %q", err, text)
		}
	}
}

// TestRuleThatLeavesADatabaseOut: the new rule has only one of two databases. The command refuses
// until it is given the other one, whose row it compares, and which it closes for the old rule.
func TestRuleThatLeavesADatabaseOut(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	old, fresh, b, raise, issued := leaveB(t)
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
	wantConflict(t, err, `tags are also in store "b"`, "--leave-out with its URL", "--lost b")
	if _, stop := start(t, old); true { // the old rule is still recorded
		stop()
	}
	with := &app.RuleChange{LeaveOut: []string{b}}
	_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, with)
	wantConflict(t, err, `set max_id in store "default" to 13 or more`)
	raise(13)
	report, err := app.ApplySchema(t.Context(), fresh, app.Options{}, with)
	if err != nil || !strings.Contains(strings.Join(report, "\n"), filepath.Base(b)+": closed for the rule before") {
		t.Fatalf("apply: %q, %v", report, err)
	}
	late, err := app.New(old, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Start(t.Context()); !errors.Is(err, segment.ErrRule) {
		t.Errorf("the start of a node with the old rule: %v; want ErrRule", err)
	}
	if err := late.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	node, stop := start(t, fresh)
	log, err := manage.Ask(t.Context(), node.Backend(), manage.ListAudit{Limit: 10, Object: "tag rule"})
	if err != nil || len(log.Entries) < 2 || log.Entries[0].Result != audit.Done || log.Entries[1].Result == audit.Done || log.Entries[0].From == log.Entries[0].To {
		t.Errorf("the audit log: %+v, %v; want the change, and refusals before it", log, err)
	}
	for range 12 {
		if status, id := get(t, node, "/api/segment/get/user"); status != 200 || issued[id] {
			t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
		}
	}
	stop()
	// Later the database that was left out is used again, alone: its row is an old one.
	again := old
	again.DataDir, again.Stores, again.TagRules = shortDir(t), []string{b}, nil
	_, err = app.ApplySchema(t.Context(), again, app.Options{}, &app.RuleChange{})
	wantConflict(t, err, "was left out by another rule", "--lost default")
	with.LeaveOut = fresh.Stores
	_, err = app.ApplySchema(t.Context(), again, app.Options{}, with)
	wantConflict(t, err, "would repeat numbers of tag \"user\"")
	with.LeaveOut, with.Lost = nil, []string{"default"}
	if _, err := app.ApplySchema(t.Context(), again, app.Options{}, with); err != nil {
		t.Errorf("the database alone, as the other one is lost: %v", err)
	}
}

// TestRowLeftBehindInADatabaseThatIsLeftOut: the row of a tag was not moved out of a database that
// the new rule leaves out, or it was deleted there. The tag is created again above its numbers.
func TestRowLeftBehindInADatabaseThatIsLeftOut(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted=%v", deleted), func(t *testing.T) {
			t.Parallel()
			c, node, stop, a, _, issued := copied(t)
			if deleted {
				if err := manage.Tell(t.Context(), node.Backend(), manage.DeleteTag{Name: "user"}); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			execute(t, a, "DELETE FROM leaf_alloc WHERE biz_tag = 'user'")
			fresh := c
			fresh.DataDir, fresh.Stores, fresh.TagRules = shortDir(t), []string{storeURL(c.Stores[0])}, nil
			with := &app.RuleChange{LeaveOut: []string{storeURL(c.Stores[1])}}
			if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, with); err != nil {
				t.Fatal(err)
			}
			last, _ := start(t, fresh)
			again := segment.NewRow{Tag: "user", Start: 1, Step: 5}
			_, err := manage.Ask(t.Context(), last.Backend(), manage.CreateTag{NewRow: again})
			again.Start = startNamed(t, err)
			if _, err := manage.Ask(t.Context(), last.Backend(), manage.CreateTag{NewRow: again}); err != nil {
				t.Fatal(err)
			}
			for range 12 {
				if status, id := get(t, last, "/api/segment/get/user"); status != 200 || issued[id] {
					t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
				}
			}
		})
	}
}

// TestRuleThatLeavesAnotherDatabaseOut: the URL behind --leave-out is mistyped, and leads to a
// database of another rule with the same name, or once more to one that the new rule has. The
// command changes neither, and the database that the old rule has does not stay open.
func TestRuleThatLeavesAnotherDatabaseOut(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	old, fresh, b, raise, _ := leaveB(t)
	raise(1000)
	_, other := divided(t)
	other.DataDir, other.TagRules = shortDir(t), []string{"user*=a"}
	if _, err := app.ApplySchema(t.Context(), other, app.Options{}, &app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	if _, stop := start(t, other); true {
		stop()
	}
	linked := filepath.Join(shortDir(t), "linked")
	if err := os.Symlink(filepath.Dir(strings.TrimPrefix(b, "sqlite:")), linked); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		leaveOut []string
		text     string
		earlier  bool // a version that did not note which command recorded a rule recorded all of them
	}{
		{[]string{storeURL(other.Stores[1])}, "has the same name by another rule", false},
		{[]string{b, "sqlite:" + filepath.Join(linked, "a.db")}, "names this database twice", false},
		{[]string{storeURL(other.Stores[1])}, "has the same name by another rule", true},
	} {
		for _, store := range slices.Concat(old.Stores, other.Stores) {
			if c.earlier {
				execute(t, openFile(t, strings.TrimPrefix(storeURL(store), "sqlite:")), "DELETE FROM leaf_meta WHERE name = 'rule_decision'")
			}
		}
		_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{LeaveOut: c.leaveOut})
		wantConflict(t, err, c.text)
		for _, had := range []config.Config{old, other} { // each has its rule as before
			if _, stop := start(t, had); true {
				stop()
			}
		}
	}
}

// TestRuleIsRecordedNowhereIfRefused: leaf schema apply with a new rule is refused by a database
// that has another one. It does not record the rule in a new database: a node with the new rule
// would take ranges there while the other database does not answer.
func TestRuleIsRecordedNowhereIfRefused(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, _, stop, _, _, _ := copied(t)
	stop()
	path := filepath.Join(shortDir(t), "c.db")
	fresh := c
	fresh.DataDir, fresh.Stores, fresh.TagRules = shortDir(t), append([]string{"c=sqlite:" + path}, c.Stores...), []string{"user*=c"}
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, nil)
	wantConflict(t, err, "add --accept-rule")
	var recorded int
	if err := openFile(t, path).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_meta WHERE name = 'tag_rule'").Scan(&recorded); err != nil || recorded > 0 {
		t.Errorf("the new database has %d rules, %v; want none", recorded, err)
	}
}

// TestClustersOfOneRule: two clusters have the same rule. The database a of one does not stand for that
// of the other, and one that is lost is not lost for both.
func TestClustersOfOneRule(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	_, one := divided(t)
	_, two := divided(t)
	fresh := one
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=b"}
	fresh.Stores = []string{one.Stores[1], "c=" + storeURL(two.Stores[1]), "d=" + storeURL(one.Stores[0])}
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
	wantConflict(t, err, `tags are also in store "a"`, `store "c" has now`)
	fresh.Stores = fresh.Stores[:2]
	_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{Lost: []string{"a"}})
	wantConflict(t, err, "--lost a stands for one database", `"b" and "c"`)
	if _, err = app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{Lost: []string{"a", "a"}}); err != nil {
		t.Errorf("both are lost: %v", err)
	}
}

// TestRuleOfAnEarlierVersionWithALostDatabase is TestRuleOfAnEarlierVersion where no node can reach
// the other database again. The node need not serve to complete the record.
func TestRuleOfAnEarlierVersionWithALostDatabase(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, _, stop, a, _, _ := copied(t)
	stop()
	execute(t, a, "DELETE FROM leaf_meta WHERE name = 'store_names'")
	c.Stores[1] = "b=mysql://leaf@127.0.0.1:1/gone"
	fresh := c
	fresh.DataDir, fresh.Stores, fresh.TagRules = shortDir(t), []string{storeURL(c.Stores[0])}, nil
	lost := &app.RuleChange{Lost: []string{"b"}}
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, lost)
	wantConflict(t, err, "Start one node with that rule")
	if _, stop := start(t, c); true {
		stop()
	}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, lost); err != nil {
		t.Error(err)
	}
}

// TestRuleOfAnEarlierVersion: a version before did not record the names of the databases. A node of
// this version completes the record.
func TestRuleOfAnEarlierVersion(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, _, stop, a, b, _ := copied(t)
	stop()
	execute(t, a, "DELETE FROM leaf_meta WHERE name = 'store_names'")
	execute(t, b, "DELETE FROM leaf_meta WHERE name = 'store_names'")
	execute(t, a, "UPDATE leaf_alloc SET max_id = 1000 WHERE biz_tag = 'user'")
	fresh := c
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
	wantConflict(t, err, "Start one node with that rule")
	if _, stop := start(t, c); true {
		stop()
	}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{}); err != nil {
		t.Error(err)
	}
}

// TestRuleBesideNodesThatItDoesNotSee: nodes run on by the old rule, and no list shows them: they
// were cut off, suspended, or just started. Whatever they issue before the change, while it goes on
// and after it, no number comes twice.
func TestRuleBesideNodesThatItDoesNotSee(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, node, _, a, b, issued := copied(t)
	other := c
	other.DataDir = shortDir(t)
	second, _ := start(t, other)
	var mu sync.Mutex
	twice := func(id string) bool {
		mu.Lock()
		defer mu.Unlock()
		defer func() { issued[id] = true }()
		return issued[id]
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, n := range []*app.App{node, second} {
		group.Go(func() {
			for ctx.Err() == nil {
				if status, id := get(t, n, "/api/segment/get/user"); status == 200 && twice(id) {
					t.Errorf("a node with the old rule issued %s, which was issued before", id)
				}
			}
		})
	}
	fresh := c
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
	until(t, "the rule is changed", func() bool {
		var end int64
		if err := b.QueryRowContext(t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'user'").Scan(&end); err != nil {
			t.Fatal(err)
		}
		execute(t, a, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'user'", end+1000)
		execute(t, a, "DELETE FROM leaf_repair_node")
		execute(t, b, "DELETE FROM leaf_repair_node")
		_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
		return err == nil // else a node has entered a list meanwhile
	})
	last, _ := start(t, fresh)
	for range 200 {
		if status, id := get(t, last, "/api/segment/get/user"); status != 200 || twice(id) {
			t.Fatalf("got %d %s", status, id)
		}
	}
	stop()
	group.Wait()
}

// TestDatabaseThatWasLeftOutBefore: the URL behind --leave-out leads to a database that an earlier
// rule left out. It had the same name there, and is not the one that the rule has now.
func TestDatabaseThatWasLeftOutBefore(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	old, fresh, first, raise, _ := leaveB(t)
	raise(1000)
	accept := func(c config.Config, leaveOut ...string) error {
		_, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{LeaveOut: leaveOut})
		return err
	}
	if err := accept(fresh, first); err != nil {
		t.Fatal(err)
	}
	again := old
	again.DataDir = shortDir(t)
	again.Stores = []string{old.Stores[0], "b=sqlite:" + filepath.Join(again.DataDir, "second.db")}
	if err := accept(again); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, accept(fresh, first), `tags are also in store "b"`)
	if _, stop := start(t, again); true { // the rule is still recorded
		stop()
	}
	if err := accept(fresh, storeURL(again.Stores[1])); err != nil {
		t.Error(err)
	}
}

// TestInterruptedChangeGoesOn: a command is killed after it has recorded its rule in the first of
// the databases. It is run again, with the same rule only. After that the rule can be changed back.
func TestInterruptedChangeGoesOn(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for name, leaves := range map[string]bool{"a database is added": false, "a database is left out": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, old := divided(t)
			third := "sqlite:" + filepath.Join(dir, "c.db")
			fresh := old
			with, back := &app.RuleChange{}, &app.RuleChange{}
			if fresh.DataDir = shortDir(t); leaves {
				fresh.Stores, with.LeaveOut = old.Stores[:1], []string{storeURL(old.Stores[1])}
			}
			fresh.Stores, fresh.TagRules, back.LeaveOut = append([]string{"c=" + third}, fresh.Stores...), []string{"user*=c"}, []string{third}
			if err := app.InterruptRuleChange(t.Context(), fresh, *with); err != nil {
				t.Fatal(err)
			}
			_, err := app.ApplySchema(t.Context(), old, app.Options{}, back)
			wantConflict(t, err, "has begun to record the rule", "run it again, with that rule")
			for _, next := range []struct {
				config.Config
				*app.RuleChange
			}{{fresh, with}, {old, back}} {
				if _, err := app.ApplySchema(t.Context(), next.Config, app.Options{}, next.RuleChange); err != nil {
					t.Fatal(err)
				}
				if _, stop := start(t, next.Config); true {
					stop()
				}
			}
		})
	}
}

// TestCommandKilledAtEachStep: wherever a command is killed, it can be run again, also if that one is
// killed when it has decided everywhere, and the rule can be changed back after that. Nothing has to be
// declared lost. As long as a database is not left out for good, the command does not end without it.
func TestCommandKilledAtEachStep(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, old := divided(t)
	third := "sqlite:" + filepath.Join(dir, "c.db")
	fresh := old
	fresh.DataDir, fresh.Stores, fresh.TagRules = shortDir(t), []string{old.Stores[0], "c=" + third}, []string{"user*=c"}
	with, back := app.RuleChange{LeaveOut: []string{storeURL(old.Stores[1])}}, app.RuleChange{LeaveOut: []string{third}}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &with); err != nil { // makes the tables
		t.Fatal(err)
	}
	run := func(c config.Config, change app.RuleChange, steps int) (done bool, err error) {
		t.Helper()
		command, err := app.NewRuleCommand(c, change)
		if err != nil {
			t.Fatal(err)
		}
		defer command.Close()
		for n := 0; !done && n < steps; n++ {
			done, err = command.Step(t.Context())
		}
		return done, err
	}
	must := func(done bool, err error) bool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	const all = 100
	b, c := openFile(t, filepath.Join(dir, "b.db")), openFile(t, filepath.Join(dir, "c.db"))
	for steps, done := 0, false; !done; steps++ {
		must(run(old, back, all))
		execute(t, c, "DELETE FROM leaf_meta WHERE name IN ('tag_rule', 'store_name', 'store_names')") // as a new database
		done = must(run(fresh, with, steps))
		var rule string
		if err := b.QueryRowContext(t.Context(), "SELECT value FROM leaf_meta WHERE name = 'tag_rule'").Scan(&rule); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(rule, "none: a newer rule leaves the database out") {
			_, err := run(fresh, app.RuleChange{}, all)
			wantConflict(t, err, `tags are also in store "b"`)
		}
		must(run(fresh, with, 3+3+2*3))
		must(run(fresh, with, all))
	}
}

// TestDatabaseReplacedInAnInterruptedChange: a command is killed after it has recorded its rule in a
// new database, from which nodes issue since. A copy of that database stands there when the command
// is run again.
func TestDatabaseReplacedInAnInterruptedChange(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, old := divided(t)
	fresh := old
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=c"}
	fresh.Stores = append([]string{"c=sqlite:" + filepath.Join(dir, "c.db")}, old.Stores...)
	if err := app.InterruptRuleChange(t.Context(), fresh, app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	fresh.Stores[0] = "c=sqlite:" + filepath.Join(dir, "copy.db")
	change := &app.RuleChange{}
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, change)
	wantConflict(t, err, `had done nothing in store "c"`, "--lost c")
	change.Lost = []string{"c"}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, change); err != nil {
		t.Error(err)
	}
}
