package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// counted is sequences; the entity "elsewhere" gets an error, "panic" panics, and each call asks for admission.
type counted struct{ calls int }

func (s *counted) NextEach(ctx context.Context, _ string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, _ error) {
	s.calls++
	if err := leaf.Admit(ctx); err != nil {
		return nil, err
	}
	if requests[0].Entity == "panic" {
		panic("planted")
	}
	for _, q := range requests {
		r := leaf.SequenceResult{Range: leaf.Range{Lo: 1, Hi: 1 + int64(q.Count)}}
		if q.Entity == "elsewhere" {
			r = leaf.SequenceResult{Err: leaf.ErrNotReady}
		}
		results = append(results, r)
	}
	return results, nil
}

// TestSequencesPanic: a call in which the engine panics has taken nothing from limits.
func TestSequencesPanic(t *testing.T) {
	g, err := limit.New(leaf.Issuers{Segment: leaf.Disabled("segment"), Snowflake: leaf.Disabled("snowflake"), Sequence: &counted{}}, limit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g.Set(limit.Rules{Tags: map[string]limit.Rule{"chat": {Quota: 10}}})
	issuers, err := g.Open(leaf.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = issuers.Sequencer().NextEach(t.Context(), "chat", []leaf.SequenceRequest{{Entity: "panic", Count: 10}})
	}()
	if _, err := issuers.Sequencer().NextEach(t.Context(), "chat", []leaf.SequenceRequest{{Entity: "1", Count: 10}}); err != nil {
		t.Error(err)
	}
	if n := g.Status().Segment.Waiting; n != 0 {
		t.Errorf("%d requests wait", n)
	}
}

// TestSequences: the limits of a tag hold for the sequence of its name. What fails is refunded, and a look counts as one.
func TestSequences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{}
		g, err := limit.New(leaf.Issuers{Segment: leaf.Disabled("segment"), Snowflake: leaf.Disabled("snowflake"), Sequence: s}, limit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		g.Set(limit.Rules{Tags: map[string]limit.Rule{"chat": {Quota: 10}, "off": {Blocked: true}}})
		issuers, err := g.Open(leaf.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(name string, want error, requests ...leaf.SequenceRequest) {
			t.Helper()
			if got, err := issuers.Sequencer().NextEach(t.Context(), name, requests); !errors.Is(err, want) || err == nil && len(got) != len(requests) {
				t.Errorf("%s %v: %v, %v, want %v", name, requests, got, err, want)
			}
		}
		ask("chat", nil, leaf.SequenceRequest{Entity: "1", Count: 5}, leaf.SequenceRequest{Entity: "elsewhere", Count: 5}) // leaves 5
		ask("chat", nil, leaf.SequenceRequest{Entity: "elsewhere", Count: 5})
		ask("chat", leaf.ErrThrottled, leaf.SequenceRequest{Entity: "1", Count: 6})
		ask("chat", nil, leaf.SequenceRequest{Entity: "1", Count: 3}, leaf.SequenceRequest{Entity: "1"})
		ask("chat", nil, leaf.SequenceRequest{Entity: "1", Count: 1})
		calls := s.calls
		ask("chat", leaf.ErrThrottled, leaf.SequenceRequest{Entity: "1"})
		ask("off", leaf.ErrBlocked, leaf.SequenceRequest{Entity: "1", Count: 1})
		if s.calls != calls {
			t.Error("what is refused was asked for")
		}
		ask("other", nil, leaf.SequenceRequest{Entity: "1", Count: 1})
	})
}
