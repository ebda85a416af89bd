package chaos_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
)

// TestOutcomes: what a client makes of each kind of reply.
func TestOutcomes(t *testing.T) {
	problem := func(w http.ResponseWriter, status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q}`, code)
	}
	for _, tt := range []struct {
		name    string
		count   int
		answer  http.HandlerFunc
		want    string
		faulty  bool // the program must never do this
		atLeast int  // IDs
	}{
		{"an ID", 1, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "42") }, "ok", false, 1},
		{"three IDs", 3, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "1\n2\n3\n") }, "ok", false, 3},
		{"too few IDs", 3, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "1\n2\n") }, "200 OK", true, 0},
		{"no number", 1, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "one") }, "200 OK", true, 0},
		{"an error", 1, func(w http.ResponseWriter, _ *http.Request) { problem(w, 503, "exhausted") }, "exhausted", false, 0},
		{"an error without a code", 1, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "500 Internal Server Error", true, 0},
		{"a reply that breaks off", 3, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "6")
			fmt.Fprint(w, "1\n2\n")
			panic(http.ErrAbortHandler)
		}, "cut", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.answer)
			defer s.Close()
			samples, ids, fault := chaos.Ask(t.Context(), strings.TrimPrefix(s.URL, "http://"), chaos.NewStream("/", tt.count, 100), 50*time.Millisecond)
			if len(samples) == 0 || samples[0].Outcome() != tt.want {
				t.Errorf("recorded %v, want %q", samples, tt.want)
			}
			if (fault != nil) != tt.faulty {
				t.Errorf("fault %v, want one: %t", fault, tt.faulty)
			}
			if len(ids) < tt.atLeast || tt.atLeast == 0 && len(ids) > 0 {
				t.Errorf("logged %v, want at least %d", ids, tt.atLeast)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		s := httptest.NewServer(http.NotFoundHandler())
		s.Close()
		samples, _, fault := chaos.Ask(t.Context(), strings.TrimPrefix(s.URL, "http://"), chaos.NewStream("/", 1, 100), 50*time.Millisecond)
		if fault != nil || len(samples) == 0 || samples[0].Outcome() != "refused" {
			t.Errorf("%v, %v", samples, fault)
		}
	})
}

// TestWaitingCounts: while one reply takes a second and a half, the requests that were
// due meanwhile are late or not sent, and none of them is forgotten.
func TestWaitingCounts(t *testing.T) {
	const rate, lasts = 50, 2500 * time.Millisecond
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(1500 * time.Millisecond) // what is tested
		}
		fmt.Fprint(w, "1")
	}))
	defer s.Close()
	samples, _, _ := chaos.Ask(t.Context(), strings.TrimPrefix(s.URL, "http://"), chaos.NewStream("/", 1, rate), lasts)
	count := map[string]int{}
	for _, x := range samples {
		count[x.Outcome()]++
	}
	// Due from 0 to 0.5 s: more than a second ago when the first reply comes.
	if count["late"] < 1 || count["unsent"] < 20 || count["unsent"] > 30 {
		t.Errorf("%v: want the first late, and some 25 unsent", count)
	}
	if due := int(lasts.Seconds() * rate); len(samples) < due-10 {
		t.Errorf("%d requests recorded, %d were due", len(samples), due)
	}
}

// TestEveryKindComes: all kinds come before any comes again, and a seed repeats.
func TestEveryKindComes(t *testing.T) {
	const kinds = 7
	for seed := range uint64(50) {
		dealt := chaos.Dealt(seed, kinds, 3*kinds)
		again := chaos.Dealt(seed, kinds, 3*kinds)
		for pass := range 3 {
			seen := map[int]bool{}
			for i := pass * kinds; i < (pass+1)*kinds; i++ {
				seen[dealt[i]] = true
				if dealt[i] != again[i] {
					t.Fatalf("seed %d: %v and %v", seed, dealt, again)
				}
			}
			if len(seen) != kinds {
				t.Errorf("seed %d, pass %d: %v", seed, pass, dealt)
			}
		}
	}
}
