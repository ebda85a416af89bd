package app_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/segment"
)

// backends are the three ways to reach the same thing.
func backends(t *testing.T) map[string]manage.Backend {
	t.Helper()
	nodeDir, clientDir, offlineDir := shortDir(t), shortDir(t), shortDir(t)
	node, _ := start(t, embedded(nodeDir))
	start(t, embedded(clientDir))
	all := map[string]manage.Backend{"node": node.Backend()}
	for name, dir := range map[string]string{"client": clientDir, "offline": offlineDir} {
		b, done, err := app.Open(t.Context(), embedded(dir), app.Options{}, false, app.Stores)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := done(); err != nil {
				t.Error(err)
			}
		})
		all[name] = b
	}
	if _, ok := all["client"].(*admin.Client); !ok {
		t.Fatalf("a node runs, but the backend is %T", all["client"])
	}
	return all
}

func TestBackendsBehaveAlike(t *testing.T) {
	t.Parallel()
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a repair to listen
			ctx := t.Context()
			created, err := manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 100, Step: 1000, Description: "d", Options: segment.Options{MaxStep: 5000}}})
			if err != nil {
				t.Fatal(err)
			}
			want := manage.Tag{Name: "order", MaxID: 100, Step: 1000, Description: "d", Options: segment.Options{MaxStep: 5000}, UpdateTime: created.UpdateTime, State: manage.TagOK}
			if diff := cmp.Diff(want, created); diff != "" {
				t.Errorf("created:\n%s", diff)
			}
			if _, err := manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("second create: got %v, want ErrConflict", err)
			}
			if _, err := manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "bad", Start: 1, Step: 0}}); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("step 0: got %v, want ErrBadRequest", err)
			}
			issued, err := manage.Ask(ctx, b, manage.Next{Tag: "order", N: 3})
			if diff := cmp.Diff([]leaf.Range{{Lo: 100, Hi: 103}}, issued.Ranges); err != nil || diff != "" {
				t.Errorf("next: %v\n%s", err, diff)
			}
			if _, err := manage.Ask(ctx, b, manage.Next{Tag: "nope", N: 1}); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("next of an unknown tag: got %v", err)
			}
			tag, err := manage.Ask(ctx, b, manage.GetTag{Name: "order"})
			if err != nil || tag.Fence != 1100 || tag.MaxID != 1100 || tag.State != manage.TagOK {
				t.Errorf("tag: got %+v, %v, want fence and max_id 1100", tag, err)
			}

			low, high, step := int64(50), int64(2000), int64(20)
			if _, err := manage.Ask(ctx, b, manage.SetTag{Name: "order", Change: segment.Change{MaxID: &low}}); !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("lower max_id: got %v, want ErrConflict", err)
			}
			if _, err := manage.Ask(ctx, b, manage.SetTag{Name: "order", Change: segment.Change{}}); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("empty change: got %v, want ErrBadRequest", err)
			}
			if tag, err = manage.Ask(ctx, b, manage.SetTag{Name: "order", Change: segment.Change{MaxID: &high, Step: &step}}); err != nil || tag.MaxID != 2000 || tag.Step != 20 {
				t.Errorf("set: got %+v, %v", tag, err)
			}
			if _, err := manage.Ask(ctx, b, manage.SetTag{Name: "nope", Change: segment.Change{Step: &step}}); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("set an unknown tag: got %v", err)
			}

			if _, err := manage.Ask(ctx, b, manage.RepairTag{Name: "order", Above: 5}); !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("repair below the fence: got %v, want ErrConflict", err)
			}
			if plan, err := manage.Ask(ctx, b, manage.PlanRepair{Name: "order", Above: 5}); err != nil || !strings.Contains(plan.Refused, "use ") || plan.First != 0 {
				t.Errorf("plan of a repair below the fence: got %+v, %v", plan, err)
			}
			if plan, err := manage.Ask(ctx, b, manage.PlanRepair{Name: "order", Above: 5000}); err != nil || plan.Row != 2000 || plan.Above != 5000 || plan.First != 5001 || plan.Refused != "" {
				t.Errorf("plan: got %+v, %v", plan, err)
			}
			if plan, err := manage.Ask(ctx, b, manage.PlanRepair{Name: "nope", Above: 0}); err != nil || !plan.NoRow || !strings.Contains(plan.Refused, "has no row") || plan.First != 0 {
				t.Errorf("plan of a tag without a row: got %+v, %v", plan, err)
			}
			if tag, err = manage.Ask(ctx, b, manage.GetTag{Name: "order"}); err != nil || tag.MaxID != 2000 {
				t.Errorf("after a plan: got %+v, %v", tag, err)
			}
			if repaired, err := manage.Ask(ctx, b, manage.RepairTag{Name: "order", Above: 5000}); err != nil || repaired.MaxID != 5001 || repaired.Plan.Row != 2000 || repaired.Plan.First != 5001 {
				t.Errorf("repair: got %+v, %v", repaired, err)
			}

			tags, err := manage.Ask(ctx, b, manage.ListTags{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tag := range tags {
				names = append(names, tag.Name)
			}
			if diff := cmp.Diff([]string{"leaf-segment-test", "order"}, names); diff != "" {
				t.Error(diff)
			}

			if err := manage.Tell(ctx, b, manage.DeleteTag{Name: "order"}); err != nil {
				t.Error(err)
			}
			if err := manage.Tell(ctx, b, manage.DeleteTag{Name: "order"}); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("second delete: got %v", err)
			}
			if _, err := manage.Ask(ctx, b, manage.Next{Tag: "order", N: 1}); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("next of a deleted tag: got %v", err)
			}
			// The numbers up to the fence are in use: the tag must not start below.
			_, err = manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 5000, Step: 1000}})
			if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(fmt.Sprint(err), "use --start 5001 or more") {
				t.Errorf("create below the fence: got %v", err)
			}
			if _, err = manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 5001, Step: 1000}}); err != nil {
				t.Error(err)
			}
			if issued, err = manage.Ask(ctx, b, manage.Next{Tag: "order", N: 1}); err != nil || issued.Ranges[0].Lo != 5001 {
				t.Errorf("next: got %v, %v", issued, err)
			}

			info, err := manage.Ask(ctx, b, manage.GetInfo{})
			if err != nil || !info.Ready || len(info.Stores) != 1 || info.PID == 0 || (info.HTTP == "") != (name == "offline") {
				t.Errorf("info: got %+v, %v", info, err)
			}
		})
	}
}

func TestOfflineKeepsTheListOfRecentTags(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	get(t, a, "/api/segment/get/leaf-segment-test")
	stop()
	path := filepath.Join(dir, "recent.json")
	before, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(before), "leaf-segment-test") {
		t.Fatalf("the engine writes another file now: %q, %v", before, err)
	}
	b, done, err := app.Open(t.Context(), embedded(dir), app.Options{}, false, app.Stores)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "x", Start: 1, Step: 5}}); err != nil {
		t.Error(err)
	}
	if _, err := manage.Ask(t.Context(), b, manage.Next{Tag: "x", N: 1}); err != nil {
		t.Error(err)
	}
	tag, err := manage.Ask(t.Context(), b, manage.GetTag{Name: "leaf-segment-test"})
	if err != nil || tag.MaxID != 2 {
		t.Errorf("got %+v, %v, want max_id 2: no range of a recent tag is loaded", tag, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("got %s, %v, want %s", after, err, before)
	}
}

// TestSchemaBesideTheEmbeddedDatabase: no node makes tables for leaf schema apply, so the
// error does not send its user to the node.
func TestSchemaBesideTheEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	start(t, c)
	_, err := app.ApplySchema(t.Context(), c, app.Options{}, nil)
	if !errors.Is(err, leaf.ErrConflict) {
		t.Fatalf("%v, want a conflict", err)
	}
	for _, want := range []string{fmt.Sprintf("is in use by process %d", os.Getpid()), "--store URL", "at each start"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "leave out --store") {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}

// TestCommandBesideANodeItCannotAsk: the operator of a healthy node is not told to stop it.
func TestCommandBesideANodeItCannotAsk(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	start(t, c)
	for _, direct := range []bool{true, false} {
		if !direct { // a job that cleans up has deleted the socket
			if err := os.Remove(filepath.Join(c.DataDir, "leaf.sock")); err != nil {
				t.Fatal(err)
			}
		}
		_, _, tags := app.Open(t.Context(), c, app.Options{}, direct, app.Stores)
		_, _, workers := app.Open(t.Context(), c, app.Options{}, direct, app.Registry)
		for _, err := range []error{tags, workers} {
			if !errors.Is(err, leaf.ErrConflict) {
				t.Fatalf("%v, want a conflict", err)
			}
			for _, want := range []string{fmt.Sprintf("is in use by process %d", os.Getpid()), "leave out --store", "restart the node"} {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "stop it") {
					t.Errorf("%v, want it to say %q", err, want)
				}
			}
		}
	}
}
