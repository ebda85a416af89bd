package chaos_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
	"github.com/leaf-idgen/leaf/snowflake"
)

// reply is one reply as a client logs it.
type reply struct {
	node, space string
	life        int
	ids         []int64
}

// TestVerify plants each kind of fault among good replies: it is found, and nothing
// else is.
func TestVerify(t *testing.T) {
	now := time.Now().UnixMilli()
	id := func(offset time.Duration, worker, sequence int64) int64 {
		l := snowflake.Leaf()
		id, err := l.Encode(snowflake.Parts{Unit: now + offset.Milliseconds() - l.Epoch, Worker: worker, Sequence: sequence})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, tt := range []struct {
		name    string
		replies []reply
		want    chaos.Verdict
	}{
		{"nothing wrong", []reply{
			{"a", "tag", 1, []int64{1, 2, 3}},
			{"b", "tag", 1, []int64{4, 5}},
			{"a", "tag", 2, []int64{6}},
			{"a", "other", 2, []int64{1, 2}},
			{"c", "snowflake", 1, []int64{id(0, 7, 1), id(0, 7, 2)}},
		}, chaos.Verdict{IDs: 10}},
		{
			"two nodes issue one ID",
			[]reply{{"a", "tag", 1, []int64{1, 2}}, {"b", "tag", 1, []int64{2, 3}}},
			chaos.Verdict{IDs: 4, Duplicates: 1},
		},
		{
			"one node repeats an ID after a restart",
			[]reply{{"a", "tag", 1, []int64{1, 2}}, {"a", "tag", 2, []int64{2, 3}}},
			chaos.Verdict{IDs: 4, Duplicates: 1, WithinNode: 1},
		},
		{
			"one process goes back",
			[]reply{{"a", "tag", 1, []int64{5}}, {"a", "tag", 1, []int64{4}}},
			chaos.Verdict{IDs: 2, Disorders: 1},
		},
		{
			"a later process goes back, which it may",
			[]reply{{"a", "tag", 1, []int64{5}}, {"a", "tag", 2, []int64{4}}},
			chaos.Verdict{IDs: 2},
		},
		{
			"replies of unknown processes have no order",
			[]reply{{"a", "tag", 0, []int64{5}}, {"a", "tag", 0, []int64{4}}},
			chaos.Verdict{IDs: 2},
		},
		{
			"and may not repeat either",
			[]reply{{"a", "tag", 0, []int64{5}}, {"a", "tag", 0, []int64{5}}},
			chaos.Verdict{IDs: 2, Duplicates: 1, WithinNode: 1},
		},
		{"an ID from the future", []reply{{"a", "snowflake", 1, []int64{id(time.Hour, 7, 0)}}}, chaos.Verdict{IDs: 1, Odd: 1}},
		{"an ID from the past", []reply{{"a", "snowflake", 1, []int64{id(-time.Hour, 7, 0)}}}, chaos.Verdict{IDs: 1, Odd: 1}},
		{"a negative ID", []reply{{"a", "snowflake", 1, []int64{-1}}}, chaos.Verdict{IDs: 1, Odd: 1}},
		{"two processes share a worker ID", []reply{
			{"a", "snowflake", 1, []int64{id(0, 7, 1), id(20*time.Millisecond, 7, 1)}}, {"b", "snowflake", 1, []int64{id(10*time.Millisecond, 7, 1)}},
		}, chaos.Verdict{IDs: 3, Turns: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			logs := map[string]*chaos.Log{}
			for _, r := range tt.replies {
				key := r.node + " " + r.space
				if logs[key] == nil {
					l, err := chaos.NewLog(filepath.Join(folder, r.node), r.node, r.space, r.space == "snowflake")
					if err != nil {
						t.Fatal(err)
					}
					logs[key] = l
				}
				if err := logs[key].Write(r.space, r.life, r.ids...); err != nil {
					t.Fatal(err)
				}
			}
			var all []*chaos.Log
			for _, l := range logs {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				all = append(all, l)
			}
			got, err := chaos.Verify(t.Context(), folder, all...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(chaos.Verdict{}, "Logs", "Examples")); diff != "" {
				t.Errorf("verdict (-want +got):\n%s%v", diff, got.Examples)
			}
			faults := got.Duplicates + got.Disorders + uint64(got.Odd+got.Turns)
			if (faults > 0) != (len(got.Examples) > 0) {
				t.Errorf("%d faults, examples %q", faults, got.Examples)
			}
		})
	}
}

// TestTurns: a worker ID passes from one process to the next, and never back.
func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		name    string
		tenants []chaos.Tenant
		want    int
	}{
		{"one after the other", []chaos.Tenant{{1, "a", 10, 20}, {1, "b", 21, 30}}, 0},
		{"different numbers", []chaos.Tenant{{1, "a", 10, 20}, {2, "b", 15, 30}}, 0},
		{"one process seen by two clients", []chaos.Tenant{{1, "a", 10, 20}, {1, "a", 15, 30}, {1, "b", 31, 32}}, 0},
		{"both in one millisecond", []chaos.Tenant{{1, "a", 10, 20}, {1, "b", 20, 30}}, 1},
		{"one within the other, seen by two clients", []chaos.Tenant{{1, "a", 10, 12}, {1, "a", 18, 20}, {1, "b", 14, 15}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := chaos.Turns(tt.tenants...); len(got) != tt.want {
				t.Errorf("%q, want %d", got, tt.want)
			}
		})
	}
}
