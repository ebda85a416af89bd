package forward_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// sections is a sequence whose entities have owners, by name. Node a believes what it has looked up.
type sections struct {
	mu       sync.Mutex
	owners   map[string]string
	believed map[string]string
	calls    []string // to other nodes: who was asked for how many
}

// at is the sequences of one node.
type at struct {
	*sections

	node string
}

func (a at) NextEach(_ context.Context, _ string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range requests {
		r := leaf.SequenceResult{Range: leaf.Range{Lo: 1, Hi: 1 + int64(q.Count)}}
		switch {
		case q.Entity == "unknown":
			r = leaf.SequenceResult{Err: leaf.ErrUnknownTag}
		case a.owners[q.Entity] != a.node || a.believed[q.Entity] != a.node && a.node == "a":
			r = leaf.SequenceResult{Err: &owner.ElsewhereError{Tag: q.Entity, Route: owner.Route{Address: a.believed[q.Entity]}}}
		}
		results = append(results, r)
	}
	return results, nil
}

func (s *sections) look(_ context.Context, tags []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tag := range tags {
		s.believed[tag] = s.owners[tag]
	}
	return nil
}

// theOthers takes calls to other nodes.
type theOthers struct {
	remote
	*sections
}

func (o theOthers) NextEach(ctx context.Context, to owner.Route, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	o.mu.Lock()
	o.calls = append(o.calls, fmt.Sprint(to.Address, len(requests)))
	o.mu.Unlock()
	switch to.Address {
	case "dead":
		<-ctx.Done()
		return nil, leaf.ErrNotReady
	case "panics":
		panic("planted")
	}
	return at{o.sections, to.Address}.NextEach(ctx, sequence, requests)
}

// TestSequences: a batch is divided by owners, and each request is answered by itself.
func TestSequences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sections{
			owners:   map[string]string{"mine": "a", "b1": "b", "b2": "b", "c1": "c", "moved": "c", "died": "b", "lost": ""},
			believed: map[string]string{"mine": "a", "b1": "b", "b2": "b", "c1": "c", "moved": "b", "died": "dead"},
		}
		issuer := forward.New(forward.Config{Remote: theOthers{remote{}, s}, Self: "a", MaxWait: 5 * time.Second, Attempt: time.Second})
		var requests []leaf.SequenceRequest
		names := []string{"mine", "b1", "c1", "b2", "unknown", "moved", "died", "lost"}
		for i, name := range names {
			requests = append(requests, leaf.SequenceRequest{Entity: name, Count: i + 1})
		}
		ask := func(requests []leaf.SequenceRequest) []leaf.SequenceResult {
			t.Helper()
			got, err := issuer.Sequences(at{s, "a"}, s.look).NextEach(t.Context(), "chat", requests)
			if err != nil || len(got) != len(requests) {
				t.Fatal(got, err)
			}
			return got
		}
		for i, r := range ask(requests) {
			want := map[string]error{"unknown": leaf.ErrUnknownTag, "lost": leaf.ErrNotReady}[names[i]]
			if !errors.Is(r.Err, want) || want == nil && r.Range.Len() != int64(i+1) {
				t.Errorf("%s: %v, %v, want %v", names[i], r.Range, r.Err, want)
			}
		}
		slices.Sort(s.calls)
		if want := []string{"b1", "b3", "c1", "c1", "dead1"}; !slices.Equal(s.calls, want) {
			t.Errorf("calls %q, want %q", s.calls, want)
		}
		if answered, failed := issuer.Forwarded(); answered != 5 || failed != 1 {
			t.Errorf("%d answered, %d failed", answered, failed)
		}
		s.calls = nil
		if ask(requests[:1]); s.calls != nil {
			t.Errorf("what the node owns was taken to %q", s.calls)
		}
	})
}

// TestSequencesOfAPanic: what panics in the call to one owner is the error of the requests for this owner. The others have their
// answers, and the node goes on.
func TestSequencesOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sections{owners: map[string]string{"b1": "b", "x": "panics"}, believed: map[string]string{"b1": "b", "x": "panics"}}
		issuer := forward.New(forward.Config{Remote: theOthers{remote{}, s}, Self: "a", MaxWait: time.Second, Attempt: time.Second})
		got, err := issuer.Sequences(at{s, "a"}, s.look).NextEach(t.Context(), "chat", []leaf.SequenceRequest{{Entity: "x", Count: 1}, {Entity: "b1", Count: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := errors.AsType[*bounded.PanicError](got[0].Err); !ok || p.Cause != "planted" || leaf.ClassOf(got[0].Err).Err != nil {
			t.Errorf("of the owner that panics: %v", got[0])
		}
		if got[1].Err != nil || got[1].Range.Len() != 2 {
			t.Errorf("of the other one: %v", got[1])
		}
	})
}

// TestSequenceCallerLeaves: a caller that leaves while the owner still has time to answer is not a call that has failed.
func TestSequenceCallerLeaves(t *testing.T) {
	for owner, want := range map[string]int64{"dead": 0, "": 1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			s := &sections{owners: map[string]string{"x": owner}, believed: map[string]string{"x": owner}}
			issuer := forward.New(forward.Config{Remote: theOthers{remote{}, s}, Self: "a", MaxWait: 5 * time.Second, Attempt: time.Second})
			got, err := issuer.Sequences(at{s, "a"}, s.look).NextEach(ctx, "chat", []leaf.SequenceRequest{{Entity: "x", Count: 1}})
			if err != nil || !errors.Is(got[0].Err, leaf.ErrNotReady) {
				t.Errorf("%v, %v", got, err)
			}
			if answered, failed := issuer.Forwarded(); answered != 0 || failed != want {
				t.Errorf("owner %q: %d answered, %d failed, want 0, %d", owner, answered, failed, want)
			}
		})
	}
}

// TestTooManySequencesWaitForOwners: calls that wait for an owner take nothing from those that wait for the store. How
// many may is a bound of its own.
func TestTooManySequencesWaitForOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.WithValue(t.Context(), leaf.AdmissionKey{}, refuses{})
		s := &sections{owners: map[string]string{"x": ""}, believed: map[string]string{"x": ""}}
		issuer := forward.New(forward.Config{Remote: theOthers{remote{}, s}, Self: "a", MaxWait: time.Second, Attempt: time.Second, MaxWaiting: 2})
		for round := range 2 {
			answers := make(chan error, 3)
			for range 3 {
				go func() {
					got, err := issuer.Sequences(at{s, "a"}, s.look).NextEach(ctx, "chat", []leaf.SequenceRequest{{Entity: "x", Count: 1}})
					answers <- cmp.Or(err, got[0].Err)
				}()
			}
			synctest.Wait()
			if len(answers) != 1 {
				t.Fatalf("round %d: %d of 3 calls ended, want the one too many", round, len(answers))
			}
			hints := 0
			for range 3 {
				err := <-answers
				if !errors.Is(err, leaf.ErrNotReady) {
					t.Errorf("round %d: %v, want ErrNotReady", round, err)
				}
				if leaf.RetryAfter(err) > 0 {
					hints++
				}
			}
			if hints != 1 {
				t.Errorf("round %d: %d calls were told when to retry, want the one too many", round, hints)
			}
		}
	})
}

// TestSequencesAreHeard: the node learns how far each section is that it has taken a request to, and of no other.
func TestSequencesAreHeard(t *testing.T) {
	t.Parallel()
	s := &sections{owners: map[string]string{"mine": "a", "b": "b", "c": "c"}, believed: map[string]string{"mine": "a", "b": "b", "c": "c"}}
	heard := map[string]int64{}
	issuer := forward.New(forward.Config{
		Remote: theOthers{remote{}, s}, Self: "a", MaxWait: time.Minute, Attempt: time.Minute,
		Heard: func(tag string, end int64) { heard[tag] = end },
	})
	requests := []leaf.SequenceRequest{{Entity: "mine", Count: 9}, {Entity: "b", Count: 2}, {Entity: "unknown", Count: 1}, {Entity: "c", Count: 5}}
	if _, err := issuer.Sequences(at{s, "a"}, s.look).NextEach(t.Context(), "chat", requests); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"b": 3, "c": 6}; !maps.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}

// TestSequencesHere: a call that was forwarded waits for the registry once, and is not forwarded again.
func TestSequencesHere(t *testing.T) {
	t.Parallel()
	s := &sections{owners: map[string]string{"new": "a", "gone": "b"}, believed: map[string]string{"new": "b", "gone": "b"}}
	got, err := forward.SequencesHere(at{s, "a"}, s.look).NextEach(t.Context(), "chat", []leaf.SequenceRequest{{Entity: "gone", Count: 1}, {Entity: "new", Count: 2}})
	if err != nil || got[1].Range.Len() != 2 || !errors.Is(got[0].Err, leaf.ErrNotReady) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestPeersSequence: answers and errors of an owner arrive as it gave them, and what does not fit is no answer.
func TestPeersSequence(t *testing.T) {
	t.Parallel()
	peers := forward.NewPeers(nil, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = peers.Close() })
	to := owner.Route{Address: serve(t), Secret: "secret"}
	got, err := peers.NextEach(t.Context(), to, "chat", []leaf.SequenceRequest{{Entity: "7", Count: 2}, {Entity: "8", From: 300}, {Entity: "unknown_tag", Count: 1}})
	if err != nil || got[0].Range != (leaf.Range{Lo: 100, Hi: 102}) || got[1].Range != (leaf.Range{Lo: 300, Hi: 300}) || !errors.Is(got[2].Err, leaf.ErrUnknownTag) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := peers.NextEach(t.Context(), to, "chat", []leaf.SequenceRequest{{Entity: "more", Count: 1}}); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("two numbers in place of one: %v, %v", got, err)
	}
	to.Secret = "guess"
	if got, err := peers.NextEach(t.Context(), to, "chat", []leaf.SequenceRequest{{Entity: "7", Count: 1}}); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("with a wrong secret: %v, %v", got, err)
	}
}
