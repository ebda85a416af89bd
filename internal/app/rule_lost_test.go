package app_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// TestRuleThatLosesADatabase: no node can reach the other database ever again, as the operator says.
func TestRuleThatLosesADatabase(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	_, fresh, _, raise, _ := leaveB(t)
	raise(1000)
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{Lost: []string{"c"}})
	wantConflict(t, err, "--lost b")
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{Lost: []string{"b"}}); err != nil {
		t.Error(err)
	}
}

// TestRuleChangeInTheFolderOfANode: a process has the data directory, in which the command finds what the node knows: the ends of
// ranges, and the ID that a database in place of a lost one must have. Without them the command does nothing.
func TestRuleChangeInTheFolderOfANode(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, fresh, _, raise, _ := leaveB(t)
	raise(1000)
	fresh.DataDir = c.DataDir
	dir, err := datadir.Open(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	lost := &app.RuleChange{Lost: []string{"b"}}
	_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, lost)
	wantConflict(t, err, c.DataDir, "stop them")
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, lost); err != nil {
		t.Error(err)
	}
}

// TestLostNameOfTwoRules: the databases come from two clusters, and in each a rule calls one of its
// databases a. The operator has lost one of the two. The command does not take the other one, whose
// nodes may issue, for lost as well.
func TestLostNameOfTwoRules(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	_, one := divided(t)
	_, two := divided(t)
	two.DataDir, two.TagRules = shortDir(t), []string{"user*=a"}
	if _, err := app.ApplySchema(t.Context(), two, app.Options{}, &app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	fresh := one
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=b"}
	fresh.Stores = []string{one.Stores[1], "c=" + storeURL(two.Stores[1])}
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{Lost: []string{"a"}})
	wantConflict(t, err, "--lost a stands for one database", `"b" and "c"`, "--leave-out with the URL", "give --lost a 2 times")
	if _, stop := start(t, two); true { // its rule is still recorded
		stop()
	}
	with := &app.RuleChange{LeaveOut: []string{storeURL(two.Stores[0])}, Lost: []string{"a"}}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, with); err != nil {
		t.Errorf("one is lost, and one is left out: %v", err)
	}
}
