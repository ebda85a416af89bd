package sim_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

var errBroken = errors.New("broken")

// good is a run that proves enough.
func good(seed uint64, _ sim.Options) sim.Result {
	r := sim.Result{Seed: seed, Hash: seed, Nodes: 3, IDs: sim.LeastIDs + int64(seed), Struck: 10, Faults: map[world.Kind]int{sim.Crash: 10}}
	for _, k := range sim.Kinds("") {
		r.Faults[k]++
	}
	return r
}

// TestCampaign: what is right passes, and each thing that is wrong is reported.
func TestCampaign(t *testing.T) {
	for _, tt := range []struct {
		name     string
		campaign sim.Campaign
		spoil    func(r *sim.Result)
		want     string // in the error; "": none
	}{
		{"all is well", sim.Campaign{First: 1, Seeds: 1200}, func(*sim.Result) {}, ""},
		{"each seed twice", sim.Campaign{First: 1, Seeds: 50, Twice: true}, func(*sim.Result) {}, ""},
		{"an invariant", sim.Campaign{First: 1, Seeds: 50}, func(r *sim.Result) {
			if r.Seed == 17 {
				r.Err = errBroken
			}
		}, "seed 17: broken"},
		{"a panic", sim.Campaign{First: 1, Seeds: 50}, func(r *sim.Result) {
			if r.Seed == 18 {
				panic("boom")
			}
		}, "seed 18: panic: boom"},
		{"few nodes", sim.Campaign{First: 1, Seeds: 50}, func(r *sim.Result) { r.Nodes -= int(r.Seed) / 50 }, "seed 50 had 2 nodes"},
		{"few faults", sim.Campaign{First: 1, Seeds: 50}, func(r *sim.Result) {
			if r.Seed == 5 {
				r.Struck = 9
			}
		}, "seed 5 had 9 faults"},
		{"few IDs", sim.Campaign{First: 1, Seeds: 50}, func(r *sim.Result) { r.IDs -= 100 }, "seed 1 had 9901 IDs"},
		{"few IDs of a barren seed", sim.Campaign{First: 1, Seeds: 50}, func(r *sim.Result) {
			if r.Seed == 5 {
				r.IDs, r.Barren = 7, true
			}
		}, ""},
		{"many barren seeds", sim.Campaign{First: 1, Seeds: 1000}, func(r *sim.Result) {
			if r.Seed <= 11 {
				r.IDs, r.Barren = 7, true
			}
		}, "11 of 1000 seeds had few IDs"},
		{"few barren seeds", sim.Campaign{First: 1, Seeds: 1000}, func(r *sim.Result) {
			if r.Barren = true; r.Seed <= 10 {
				r.IDs = 7
			}
		}, ""},
		{"a fault that never fires", sim.Campaign{First: 1, Seeds: 1000}, func(r *sim.Result) { delete(r.Faults, sim.Freeze) }, `"clock frozen" never took effect`},
		{"too few seeds to say so", sim.Campaign{First: 1, Seeds: 999}, func(r *sim.Result) { delete(r.Faults, sim.Freeze) }, ""},
		{"an allowed violation that never occurs", sim.Campaign{First: 1, Seeds: sim.EnoughToAllow}, func(r *sim.Result) { r.Allowed = map[world.Kind]int64{"cloned": 0} }, `"cloned" never occurred`},
		{"too few seeds to miss an allowed violation", sim.Campaign{First: 1, Seeds: sim.EnoughToAllow - 1}, func(r *sim.Result) { r.Allowed = map[world.Kind]int64{"cloned": 0} }, ""},
		{"an allowed violation", sim.Campaign{First: 1, Seeds: sim.EnoughToAllow}, func(r *sim.Result) { r.Allowed = map[world.Kind]int64{"cloned": int64(r.Seed / 1000)} }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := sim.RunSeeds(context.Background(), tt.campaign.WithRun(func(seed uint64, o sim.Options) sim.Result {
				r := good(seed, o)
				tt.spoil(&r)
				return r
			}))
			err := report.Check()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if tt.want == "" && report.Seeds != tt.campaign.Seeds {
				t.Errorf("%d seeds, want %d", report.Seeds, tt.campaign.Seeds)
			}
		})
	}
}

// TestCampaignComparesHashes, and goes on or stops as it is told.
func TestCampaignComparesHashes(t *testing.T) {
	calls := 0
	c := sim.Campaign{First: 1, Seeds: 100, Twice: true, Workers: 1}.WithRun(func(seed uint64, o sim.Options) sim.Result {
		calls++
		r := good(seed, o)
		if seed%10 == 0 {
			r.Hash = uint64(calls)
		}
		return r
	})
	r := sim.RunSeeds(context.Background(), c)
	if len(r.Failures) != 1 || r.Failures[0].Seed != 10 || !errors.Is(r.Failures[0].Err, sim.ErrDiffers) {
		t.Errorf("got %v", r.Failures)
	}
	c.KeepGoing = true
	if r = sim.RunSeeds(context.Background(), c); len(r.Failures) != 10 || r.Seeds != 100 {
		t.Errorf("%d failures in %d seeds", len(r.Failures), r.Seeds)
	}
}

// TestCampaignEnds a seed that hangs, with the stacks, and with its context.
func TestCampaignEnds(t *testing.T) {
	stuck, entered := make(chan struct{}), make(chan struct{})
	defer close(stuck)
	hang := func(seed uint64, o sim.Options) sim.Result {
		if seed == 3 {
			close(entered)
			<-stuck
		}
		return good(seed, o)
	}
	r := sim.RunSeeds(context.Background(), sim.Campaign{First: 1, Seeds: 1 << 40, Patience: 50 * time.Millisecond}.WithRun(hang))
	if len(r.Failures) != 1 || r.Failures[0].Seed != 3 || !errors.Is(r.Failures[0].Err, sim.ErrHang) || !strings.Contains(r.Failures[0].Err.Error(), "TestCampaignEnds") {
		t.Errorf("got %v", r.Failures)
	}
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	c := sim.Campaign{First: 1, Seeds: 1 << 40}.WithRun(good)
	c.Progress = func(r *sim.Report) {
		if r.Seeds == 100 {
			cancel()
		}
	}
	if r := sim.RunSeeds(ctx, c); r.Check() != nil || r.Seeds < 100 || r.Seeds > 200 || !r.Cut() {
		t.Errorf("%d seeds, cut %v, %v", r.Seeds, r.Cut(), r.Check())
	}
}

// TestReportPrints every fault, also one that never took effect.
func TestReportPrints(t *testing.T) {
	r := sim.RunSeeds(context.Background(), sim.Campaign{First: 1, Seeds: 20}.WithRun(func(seed uint64, o sim.Options) sim.Result {
		r := good(seed, o)
		delete(r.Faults, sim.Freeze)
		r.Allowed = map[world.Kind]int64{"cloned": 5}
		return r
	}))
	var out strings.Builder
	r.Print(&out)
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"seeds 20, 0 failed", "fewest nodes 3 (seed ", "fewest IDs 10001 (seed 1)", "crash 20 220", "clock frozen 0 0", "cloned 20 100"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestKindsAreComplete: every constant of type world.Kind is in the lists of which each
// must take effect, and nothing else is.
func TestKindsAreComplete(t *testing.T) {
	want := map[world.Kind]string{}
	for _, folder := range []string{".", "world"} {
		packages, err := parser.ParseDir(token.NewFileSet(), folder, nil, 0) //nolint:staticcheck // one folder, no build tags
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			ast.Inspect(packages[name], func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || !strings.HasSuffix("."+typeName(spec.Type), ".Kind") {
					return true
				}
				for i, v := range spec.Values {
					text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					want[world.Kind(text)] = spec.Names[i].Name
				}
				return true
			})
		}
	}
	got := slices.Concat(sim.Kinds(""), sim.Kinds("order"), sim.Kinds("period"))
	for k, name := range want {
		if !slices.Contains(got, k) {
			t.Errorf("%s (%q) is in no list of internal/sim/kinds.go", name, k)
		}
	}
	for _, k := range got {
		if want[k] == "" {
			t.Errorf("%q is no constant of package sim or world", k)
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d kinds found", len(want))
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return fmt.Sprint(e.X) + "." + e.Sel.Name
	}
	return ""
}
