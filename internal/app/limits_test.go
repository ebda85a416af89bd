package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestLimitBackendsBehaveAlike: through the socket, in the node and on the opened store.
func TestLimitBackendsBehaveAlike(t *testing.T) {
	t.Parallel()
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if _, err := manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
				t.Fatal(err)
			}
			rate, quota, none, on := int64(5), int64(1)<<53/10_000, int64(0), true
			expect := func(want ...manage.Limit) {
				t.Helper()
				got, err := manage.Ask(ctx, b, manage.ListLimits{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(append([]manage.Limit{}, want...), got.Limits); diff != "" {
					t.Errorf("limits (-want +got):\n%s", diff)
				}
				if (got.Node == nil) != (name == "offline") {
					t.Errorf("node = %+v", got.Node)
				}
			}
			expect()
			tag := manage.Limit{Kind: "tag", Name: "order", Rate: rate}
			got, err := manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Rate: &rate}})
			if err != nil || got != tag {
				t.Errorf("SetTagLimit = %+v, %v; want %+v", got, err, tag)
			}
			tag.Quota, tag.Blocked = quota, true
			got, err = manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Quota: &quota, Blocked: &on}})
			if err != nil || got != tag {
				t.Errorf("SetTagLimit = %+v, %v; want %+v: what is not named stays", got, err, tag)
			}
			nobody := manage.Limit{Kind: "client", Quota: quota}
			if got, err := manage.Ask(ctx, b, manage.SetClientLimit{Name: "", LimitChange: manage.LimitChange{Quota: &quota}}); err != nil || got != nobody {
				t.Errorf("SetClientLimit = %+v, %v; want %+v", got, err, nobody)
			}
			expect(tag, nobody)
			if _, err := manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Rate: &none, Quota: &none, Blocked: new(bool)}}); err != nil {
				t.Error(err)
			}
			expect(nobody)
			bad := int64(-1)
			for what, c := range map[string]struct {
				err  error
				want error
			}{
				"a tag that is not there": {second(manage.Ask(ctx, b, manage.SetTagLimit{Name: "nope", LimitChange: manage.LimitChange{Rate: &rate}})), leaf.ErrUnknownTag},
				"a negative rate":         {second(manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Rate: &bad}})), leaf.ErrBadRequest},
				"a negative quota":        {second(manage.Ask(ctx, b, manage.SetClientLimit{Name: "x", LimitChange: manage.LimitChange{Quota: &bad}})), leaf.ErrBadRequest},
				"a bad name":              {second(manage.Ask(ctx, b, manage.SetClientLimit{Name: "a\n", LimitChange: manage.LimitChange{Rate: &rate}})), leaf.ErrBadRequest},
			} {
				if !errors.Is(c.err, c.want) {
					t.Errorf("%s: %v; want %v", what, c.err, c.want)
				}
			}
			expect(nobody)
		})
	}
}

// TestLimitsCountOnAllNodes: at once where they are set, and soon on the other nodes.
func TestLimitsCountOnAllNodes(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + shortDir(t) + "/shared.db"
	var nodes []*app.App
	for range 2 {
		c := embedded(shortDir(t))
		c.Stores = []string{store}
		c.Limit.Refresh = 100 * time.Millisecond
		a, _ := start(t, c)
		nodes = append(nodes, a)
	}
	ctx := t.Context()
	if _, err := manage.Ask(ctx, nodes[0].Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
		t.Fatal(err)
	}
	on, off, rate := true, false, int64(1)
	for _, c := range []struct {
		change manage.LimitChange
		status int
		text   string
	}{
		{manage.LimitChange{}, 200, ""},
		{manage.LimitChange{Blocked: &on}, 403, "blocked"},
		{manage.LimitChange{Blocked: &off, Rate: &rate}, 429, "1 IDs per second"},
	} {
		if c.change != (manage.LimitChange{}) {
			if _, err := manage.Ask(ctx, nodes[0].Backend(), manage.SetTagLimit{Name: "order", LimitChange: c.change}); err != nil {
				t.Fatal(err)
			}
		}
		ask := func(a *app.App) (int, string) {
			if c.status == 429 { // the first one gets through
				get(t, a, "/api/segment/get/order")
			}
			return get(t, a, "/api/segment/get/order")
		}
		if status, body := ask(nodes[0]); status != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%+v: at once, on the node that set it: %d %s; want %d with %q", c.change, status, body, c.status, c.text)
		}
		until(t, fmt.Sprintf("%+v counts on the other node", c.change), func() bool {
			status, _ := ask(nodes[1])
			return status == c.status
		})
	}
	limits, err := manage.Ask(ctx, nodes[0].Backend(), manage.ListLimits{})
	if err != nil || len(limits.Limits) != 1 || limits.Limits[0].Refused == 0 || limits.Node.Blocked != 1 || limits.Node.Rate == 0 {
		t.Errorf("Limits = %+v, %+v, %v; want the refusals", limits.Limits, limits.Node, err)
	}
	_, metrics := get(t, nodes[0], "/metrics")
	for _, want := range []string{
		`leaf_requests_refused_total{reason="blocked"} 1`, `leaf_requests_refused_total{reason="rate"} `,
		`leaf_requests_waiting{mode="segment"} 0`, `leaf_requests_waiting_limit{mode="segment"} 10000`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// TestLimitsNeedADatabase, and say so.
func TestLimitsNeedADatabase(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Segment.Enable = false
	c.Snowflake.Registry, c.Snowflake.WorkerID = "static", "7"
	a, _ := start(t, c)
	rate := int64(1)
	_, err := manage.Ask(t.Context(), a.Backend(), manage.SetClientLimit{Name: "x", LimitChange: manage.LimitChange{Rate: &rate}})
	if !errors.Is(err, leaf.ErrDisabled) || !strings.Contains(err.Error(), "limits are kept in the database of") {
		t.Errorf("SetClientLimit without a database: %v", err)
	}
	if got, err := manage.Ask(t.Context(), a.Backend(), manage.ListLimits{}); err != nil || len(got.Limits) != 0 || got.Node == nil {
		t.Errorf("Limits without a database = %+v, %v", got, err)
	}
}
