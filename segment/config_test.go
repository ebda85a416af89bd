package segment_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

func TestConfigLimits(t *testing.T) {
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for field, cfg := range map[string]segment.Config{
		"max-wait":      {MaxWait: time.Microsecond},
		"load-timeout":  {LoadTimeout: time.Hour},
		"max-loads":     {MaxLoads: -1},
		"sync-interval": {SyncInterval: time.Millisecond},
		"negative-ttl":  {NegativeTTL: -time.Second},
		"max-step":      {MaxStep: segment.MaxStep + 1},
		"short-segment": {ShortSegment: time.Hour, LongSegment: time.Minute},
		"recent-for":    {RecentFor: time.Millisecond},
	} {
		cfg.NodeID = "node-1"
		_, err := segment.New(router, newDisk(), cfg)
		if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), field+"=") || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%s: error %v, want a bad request with field, value and limit", field, err)
		}
	}
	if err := (segment.Config{NodeID: "node-1"}).WithDefaults().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// TestIdentityIsRequired: a program that leaves the identity out would not be asked in a repair of another node, which would
// then go on below the numbers that this one holds.
func TestIdentityIsRequired(t *testing.T) {
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := segment.New(router, newDisk(), segment.Config{}); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "node-id=") {
		t.Errorf("New = %v, want a bad request that names node-id", err)
	}
}

// TestIdentityThatNoBoardCanHave is refused at once: MySQL and PostgreSQL would refuse it with each look at the board, and the node
// would issue nothing.
func TestIdentityThatNoBoardCanHave(t *testing.T) {
	for id, good := range map[string]bool{
		strings.Repeat("x", 60): true, strings.Repeat("x", 61): false, "node 1": false, "node-1\n": false, "nœud": false, segment.DeletedRow: false,
	} {
		err := segment.Config{NodeID: id}.WithDefaults().Validate()
		if good && err != nil || !good && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "node-id=")) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestOptionsLimits(t *testing.T) {
	for _, c := range []struct {
		options segment.Options
		field   string // empty: valid
	}{
		{segment.Options{}, ""},
		{segment.Options{MinStep: 1, MaxStep: segment.MaxStep}, ""},
		{segment.Options{MinStep: 5, MaxStep: 5}, ""},
		{segment.Options{MinStep: -1}, "min_step"},
		{segment.Options{MinStep: segment.MaxStep + 1}, "min_step"},
		{segment.Options{MaxStep: -1}, "max_step"},
		{segment.Options{MaxStep: segment.MaxStep + 1}, "max_step"},
		{segment.Options{MinStep: 6, MaxStep: 5}, "min_step"},
		{segment.Options{Format: "INV-{seq:08}"}, ""},
		{segment.Options{Format: "INV-{seq:8}"}, "format"},
		{segment.Options{Order: segment.OrderPlain}, ""},
		{segment.Options{Order: segment.OrderStrict}, ""},
		{segment.Options{Order: "Strict"}, "order"},
	} {
		err := c.options.Validate()
		if c.field == "" && err != nil || c.field != "" && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), c.field+"=")) {
			t.Errorf("%+v: error %v, want one that names %q", c.options, err, c.field)
		}
	}
}

func TestChangeApplies(t *testing.T) {
	five, yes := int64(5), true
	if (segment.Change{MaxID: &five, Step: &five}).TouchesOptions() {
		t.Error("a change of max_id and step needs leaf_tag_option")
	}
	c := segment.Change{MinStep: &five, FixedStep: &yes, Format: new("{seq:08}"), Order: new(segment.OrderStrict)}
	if got, want := c.ApplyTo(segment.Options{MaxStep: 9}), (segment.Options{MinStep: 5, MaxStep: 9, FixedStep: true, Format: "{seq:08}", Order: segment.OrderStrict}); got != want || !c.TouchesOptions() {
		t.Errorf("options %+v, want %+v", got, want)
	}
	if got := (segment.Change{Order: new(segment.OrderPlain)}).ApplyTo(segment.Options{MaxStep: 9, Order: segment.OrderStrict}); got != (segment.Options{MaxStep: 9}) {
		t.Errorf("options %+v, want none of the order", got)
	}
}

func TestRepairRefusesBadValues(t *testing.T) {
	a := node(t, newStore(row(10)), nil, segment.Config{})
	for name, call := range map[string]func() error{
		"negative":  func() error { _, err := a.Repair(t.Context(), "order", -1); return err },
		"too large": func() error { _, err := a.Repair(t.Context(), "order", segment.MaxMaxID+1); return err },
		"no tag":    func() error { _, err := a.Repair(t.Context(), "", 1); return err },
	} {
		if err := call(); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: error %v, want a bad request", name, err)
		}
	}
	_, err := a.Repair(t.Context(), "nope", 1)
	wantErr(t, err, leaf.ErrUnknownTag)
}
