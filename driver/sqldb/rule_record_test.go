package sqldb_test

import (
	"reflect"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// FuzzRuleRecord: whatever is recorded in place of a rule is refused, or means what is written for
// it again.
func FuzzRuleRecord(f *testing.F) {
	for _, rule := range []string{
		"", "2a14dd2357c9efb6", "-", "none: ",
		"none: a newer rule leaves the database out 2a14 COMMAND c1e6",
		"none: leaf schema apply --accept-rule is changing it COMMAND; was -",
		"none: leaf schema apply --accept-rule is changing it COMMAND; was 2a14",
		"none: leaf schema apply --accept-rule is changing it COMMAND; was none: a newer rule leaves the database out 2a14 COMMAND -",
		"none: leaf schema apply --accept-rule is recording another COMMAND FIRST c1e6 00ff; was 2a14",
		"none: leaf schema apply --accept-rule is recording another COMMAND FIRST - 00ff; was ",
	} {
		f.Add(rule, "a", "a,b")
	}
	f.Fuzz(func(t *testing.T, rule, store, stores string) {
		b, err := sqldb.RereadRule(&segment.Binding{Rule: rule, Store: store, Stores: stores})
		if err != nil {
			return
		}
		again, err := sqldb.RereadRule(b)
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Errorf("%+v is read as %+v, %v", b, again, err)
		}
	})
}
