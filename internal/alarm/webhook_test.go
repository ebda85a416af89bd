package alarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/alarm"
)

// receiver is the other end of a webhook, without a network. answer returns the
// status of the n-th request, 0 for none at all.
type receiver struct {
	answer func(n int, r *http.Request) int

	mu     sync.Mutex
	bodies []string
	times  []time.Time
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.bodies = append(r.bodies, string(body))
	r.times = append(r.times, time.Now())
	n := len(r.bodies)
	r.mu.Unlock()
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(n, req)
	}
	if status == 0 {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: req}, nil
}

// got returns subject and state of what arrived.
func (r *receiver) got(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, body := range r.bodies {
		var p struct{ Subject, State, Text string }
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, p.Subject+" "+p.State+" "+p.Text)
	}
	return out
}

func hooked(r *receiver) alarm.Config {
	return alarm.Config{Node: "n1", Webhook: alarm.Webhook{
		URL: "http://hooks.example/secret-token", Timeout: 2 * time.Second, Client: &http.Client{Transport: r},
	}}
}

func TestWebhookBody(t *testing.T) {
	got := make(chan string, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer srv.Close()
	b := board(t, alarm.Config{Node: "n1", Webhook: alarm.Webhook{URL: srv.URL + "/x"}})
	b.Raise(regress("a\"b", "text"))
	first := <-got
	b.Clear(leaf.AlarmRegress, "a\"b")
	for i, line := range []string{first, <-got} {
		head, body, _ := strings.Cut(line, "{")
		if head != "POST /x application/json " {
			t.Errorf("request %q", head)
		}
		var m map[string]string
		if err := json.Unmarshal([]byte("{"+body), &m); err != nil {
			t.Fatal(err)
		}
		if at, err := time.Parse(time.RFC3339, m["time"]); err != nil || time.Since(at) > time.Minute {
			t.Errorf("time %q: %v", m["time"], err)
		}
		delete(m, "time")
		want := map[string]string{
			"code": "regress", "subject": "a\"b", "text": "text", "do": "repair it", "node": "n1", "state": []string{"raised", "cleared"}[i],
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	}
}

// TestWebhookRetries with a growing pause until the receiver takes the post; one
// that it refuses for good is given up.
func TestWebhookRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(n int, _ *http.Request) int {
			return []int{500, 503, 0, 429, 408, 204, 400, 200}[n-1]
		}}
		out := &output{}
		cfg := hooked(r)
		cfg.Logger = out.logger()
		b := board(t, cfg)
		b.Raise(regress("a", "1"))
		time.Sleep(time.Hour)
		b.Raise(regress("b", "2"))
		b.Raise(regress("c", "3"))
		time.Sleep(time.Hour)
		want := []string{"a raised 1", "a raised 1", "a raised 1", "a raised 1", "a raised 1", "a raised 1", "b raised 2", "c raised 3"}
		if diff := cmp.Diff(want, r.got(t)); diff != "" {
			t.Errorf("posts (-want +got):\n%s", diff)
		}
		if got, want := b.Webhook(), (alarm.WebhookStats{Sent: 2, Failed: 6, Dropped: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		for i, ms := range []int64{250, 500, 1000 + 2000, 2000, 4000} {
			least := time.Duration(ms) * time.Millisecond
			if pause := r.times[i+1].Sub(r.times[i]); pause < least || pause > 3*least {
				t.Errorf("pause %d is %v, want about %v", i+1, pause, 2*least)
			}
		}
		if log := strings.Join(out.lines(), "\n"); strings.Contains(log, "secret") || !strings.Contains(log, "not delivered") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// TestWebhookStorm: while the receiver hangs, the queue stays bounded, drops the
// oldest, and a later state of an alarm replaces the one that waits.
func TestWebhookStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		down := true
		r := &receiver{answer: func(int, *http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return 0
			}
			return 200
		}}
		b := board(t, hooked(r))
		b.Raise(regress("first", "1"))
		synctest.Wait() // it is under way
		const queue, dropped = 256, 97
		for i := range dropped + queue {
			b.Raise(regress(fmt.Sprint("tag-", i), "x"))
		}
		b.Clear(leaf.AlarmRegress, "tag-98")
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(time.Hour)
		want := []string{"first raised 1", "first raised 1", "tag-97 raised x", "tag-98 cleared x", "tag-99 raised x"}
		got := r.got(t)
		if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
			t.Errorf("posts (-want +got):\n%s", diff)
		}
		if st := b.Webhook(); st.Dropped != dropped || st.Sent != 1+queue || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestWebhookClose: what waits is sent at the end, in the middle of a back-off too,
// and a receiver that hangs costs Close no more than its context.
func TestWebhookClose(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(n int, r *http.Request) int
		posts  int
		stats  alarm.WebhookStats
		err    error
		took   time.Duration
	}{
		{"back again", func(n int, _ *http.Request) int {
			if n == 1 {
				return 500
			}
			return 200
		}, 4, alarm.WebhookStats{Sent: 3, Failed: 1}, nil, 0},
		{"still down", func(int, *http.Request) int { return 500 }, 4, alarm.WebhookStats{Failed: 4, Dropped: 3}, nil, 0},
		{"hangs", func(int, *http.Request) int { return 0 }, 2, alarm.WebhookStats{Failed: 2, Dropped: 3}, context.DeadlineExceeded, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &receiver{answer: c.answer}
				b, err := alarm.New(hooked(r))
				if err != nil {
					t.Fatal(err)
				}
				for _, tag := range []string{"a", "b", "c"} {
					b.Raise(regress(tag, "x"))
				}
				for len(r.got(t)) < 1 || b.Webhook().Failed < 1 {
					time.Sleep(10 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if err := b.Close(ctx); !errors.Is(err, c.err) || time.Since(start) != c.took {
					t.Errorf("Close = %v after %v; want %v after %v", err, time.Since(start), c.err, c.took)
				}
				if got := b.Webhook(); got != c.stats || len(r.got(t)) != c.posts {
					t.Errorf("%+v and %d posts, want %+v and %d", got, len(r.got(t)), c.stats, c.posts)
				}
				b.Raise(regress("late", "x"))
				synctest.Wait()
				if got := b.Webhook(); got.Dropped != c.stats.Dropped+1 {
					t.Errorf("%+v after an alarm that came too late", got)
				}
			})
		})
	}
}
