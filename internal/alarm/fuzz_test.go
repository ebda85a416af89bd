package alarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/alarm"
)

// replying answers every post with the same status and body, and counts what is read.
type replying struct {
	status int
	body   string
	posts  atomic.Int64
	read   atomic.Int64
}

func (r *replying) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	r.posts.Add(1)
	return &http.Response{
		StatusCode: r.status, Request: req, Header: http.Header{"Location": {r.body}},
		Body: io.NopCloser(io.TeeReader(strings.NewReader(strings.Repeat(r.body, 1000)), writerFunc(func(p []byte) (int, error) {
			r.read.Add(int64(len(p)))
			return len(p), nil
		}))),
	}, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// FuzzWebhookReply: every answer of a receiver accepts the post, refuses it for good or
// lets it be repeated, and none is read without end.
func FuzzWebhookReply(f *testing.F) {
	for _, status := range []int{200, 204, 199, 100, 301, 307, 400, 404, 408, 429, 499, 500, 503, 600, 0, -1} {
		f.Add(status, "http://elsewhere.example/")
	}
	f.Add(302, "%zz")
	f.Fuzz(func(t *testing.T, status int, body string) {
		synctest.Test(t, func(t *testing.T) {
			r := &replying{status: status, body: body}
			cfg := hooked(nil)
			cfg.Webhook.Client = &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			b, err := alarm.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			b.Raise(regress("order", "text"))
			time.Sleep(time.Minute)
			if err := b.Close(context.Background()); err != nil {
				t.Error(err)
			}
			st := b.Webhook()
			if st.Waiting != 0 || st.Sent+st.Dropped != 1 || st.Sent+st.Failed != r.posts.Load() {
				t.Errorf("status %d: %+v after %d posts", status, st, r.posts.Load())
			}
			if accepted := status >= 200 && status < 300; accepted != (st.Sent == 1) {
				t.Errorf("status %d: %+v", status, st)
			}
			const most = 64<<10 + 32<<10 // and what a buffer reads ahead
			if n := r.read.Load() / r.posts.Load(); n > most {
				t.Errorf("%d bytes of a reply are read", n)
			}
		})
	})
}

// FuzzPost: whatever an alarm says, its post is one JSON object that says the same.
func FuzzPost(f *testing.F) {
	f.Add("regress", "order", "store went back", "repair")
	f.Add("", "\x00\u2028\"", "a\nb", "</script>")
	f.Add("\xff", "\xc3\x28", strings.Repeat("x", 1000), "")
	f.Fuzz(func(t *testing.T, code, subject, text, do string) {
		synctest.Test(t, func(t *testing.T) {
			r := &receiver{}
			b := board(t, hooked(r))
			b.Raise(leaf.Alarm{Code: code, Subject: subject, Text: text, Do: do})
			time.Sleep(time.Second)
			r.mu.Lock()
			defer r.mu.Unlock()
			var got struct{ Code, Subject, Text, Do, State, Node string }
			if len(r.bodies) != 1 || json.Unmarshal([]byte(r.bodies[0]), &got) != nil {
				t.Fatalf("posts %q", r.bodies)
			}
			valid := func(s string) string { // what JSON cannot say is replaced, one by one
				return string([]rune(s))
			}
			if got.Code != valid(code) || got.Subject != valid(subject) || got.Text != valid(text) || got.Do != valid(do) || got.State != "raised" || got.Node != "n1" {
				t.Errorf("%q %q %q %q is posted as %+v", code, subject, text, do, got)
			}
		})
	})
}

// TestNoWebhook counts nothing.
func TestNoWebhook(t *testing.T) {
	b := board(t, alarm.Config{})
	b.Raise(regress("order", "text"))
	if st := b.Webhook(); st != (alarm.WebhookStats{}) {
		t.Errorf("%+v", st)
	}
}

// TestRedirectIsRefused: an alarm goes where it was configured to go, and nowhere else.
func TestRedirectIsRefused(t *testing.T) {
	asked := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	b, err := alarm.New(alarm.Config{Webhook: alarm.Webhook{URL: s.URL + "/hook"}})
	if err != nil {
		t.Fatal(err)
	}
	b.Raise(regress("order", "text"))
	if path := <-asked; path != "/hook" {
		t.Errorf("posted to %s", path)
	}
	if err := b.Close(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if st := b.Webhook(); st.Sent != 0 || st.Dropped != 1 || len(asked) != 0 {
		t.Errorf("%+v, asked for %d more", st, len(asked))
	}
}
