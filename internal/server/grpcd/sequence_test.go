package grpcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/leafpb"
)

// echo is sequences that answer with what they were asked for.
type echo struct{}

func (echo) NextEach(_ context.Context, _ string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, _ error) {
	for _, q := range requests {
		lo := max(q.From, 41)
		r := leaf.SequenceResult{Range: leaf.Range{Lo: lo, Hi: lo + int64(q.Count)}}
		if q.Entity == "elsewhere" {
			r = leaf.SequenceResult{Err: fmt.Errorf("%w: nobody owns it", leaf.ErrNotReady)}
		}
		results = append(results, r)
	}
	return results, nil
}

func (echo) Open(leaf.Credentials) (*leaf.Issuers, error) {
	return &leaf.Issuers{Sequence: echo{}}, nil
}
func (echo) Guarded() bool { return false }

func TestSequence(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, grpcd.Config{Access: echo{}}))
	said, err := c.Sequence(within(t, 10*time.Second), &leafpb.SequenceRequest{Sequence: "chat", Requests: []*leafpb.EntityRequest{
		{Entity: "7"}, {Entity: "7", Count: 3}, {Entity: "elsewhere"}, {Entity: "8", Peek: true}, {Entity: "8", Peek: true, From: 500},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range said.GetResults() {
		got = append(got, fmt.Sprint(r.GetRange().GetLo(), " ", r.GetRange().GetHi(), " ", r.GetError().GetCode()))
	}
	const want = "41 42 ,41 44 ,0 0 not_ready,41 41 ,500 500 "
	if strings.Join(got, ",") != want {
		t.Errorf("got %q, want %q", strings.Join(got, ","), want)
	}
	many := &leafpb.SequenceRequest{Sequence: strings.Repeat("é", leaf.MaxTagLen)}
	for range leaf.MaxEntities {
		many.Requests = append(many.Requests, &leafpb.EntityRequest{Entity: strings.Repeat("x", 64), Count: leaf.MaxBatch / leaf.MaxEntities, From: 1 << 62})
	}
	if said, err := c.Sequence(within(t, 10*time.Second), many); err != nil || len(said.GetResults()) != leaf.MaxEntities {
		t.Errorf("a full batch: %d results, %v", len(said.GetResults()), err)
	}
	many.Requests = append(many.Requests, many.GetRequests()[0])
	for name, req := range map[string]*leafpb.SequenceRequest{
		"nothing":              {Sequence: "chat"},
		"no sequence":          {Requests: []*leafpb.EntityRequest{{Entity: "7"}}},
		"a peek with a number": {Sequence: "chat", Requests: []*leafpb.EntityRequest{{Entity: "7", Count: 1, Peek: true}}},
		"less than nothing":    {Sequence: "chat", Requests: []*leafpb.EntityRequest{{Entity: "7", Count: -1}}},
		"too much":             {Sequence: "chat", Requests: []*leafpb.EntityRequest{{Entity: "7", Count: leaf.MaxBatch}, {Entity: "8"}}},
		"too many":             many,
	} {
		if said, err := c.Sequence(within(t, 10*time.Second), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, %v", name, said, err)
		}
	}
}

// TestSequenceRoute: the answer says where the numbers of the first entity are issued, if that entity got any.
func TestSequenceRoute(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, grpcd.Config{Access: echo{}, RouteEntity: func(sequence, entity string) (string, int64, bool) {
		return sequence + " " + entity, 3, entity != "lost"
	}}))
	for _, tt := range []struct {
		entities []string
		want     string // "": no route
	}{
		{[]string{"7", "8"}, "chat 7"},
		{[]string{"8", "elsewhere"}, "chat 8"},
		{[]string{"elsewhere", "7"}, ""},
		{[]string{"lost"}, ""},
	} {
		asked := &leafpb.SequenceRequest{Sequence: "chat"}
		for _, e := range tt.entities {
			asked.Requests = append(asked.Requests, &leafpb.EntityRequest{Entity: e})
		}
		said, err := c.Sequence(within(t, 10*time.Second), asked)
		if r := said.GetRoute(); err != nil || r.GetOwner() != tt.want || (r.GetEpoch() == 3) != (tt.want != "") {
			t.Errorf("%v: %v, %v, want %q", tt.entities, r, err, tt.want)
		}
	}
}
