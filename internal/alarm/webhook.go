package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/jsonpost"
)

// Webhook is where alarms are posted as JSON. The zero value of each field but URL
// means its default.
type Webhook struct {
	URL string // http or https

	// Timeout is the deadline of one attempt. 10 ms to 1 min; default 5 s.
	Timeout time.Duration

	// Client sends the posts. Default: one of its own that follows no redirect.
	Client *http.Client
}

// maxQueue is how many alarms may wait for the webhook; beyond it the oldest is dropped.
const maxQueue = 256

// Back-off between two attempts.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = time.Minute
)

// post is the body of a request.
type post struct {
	Code    string    `json:"code"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	Do      string    `json:"do"`
	State   change    `json:"state"`
	Node    string    `json:"node"`
	Time    time.Time `json:"time"` // of the change
}

type key struct{ code, subject string }

// hook sends posts one after another from a goroutine that lives while there are
// any.
type hook struct {
	rt     leaf.Runtime
	cfg    Webhook // but for URL, which is url
	url    atomic.Pointer[string]
	node   string
	log    *lines
	base   context.Context //nolint:containedctx // parent of attempts, cancelled when close gives up
	cancel context.CancelFunc

	mu      sync.Mutex
	queue   []key // oldest first
	waiting map[key]post
	running bool
	closed  bool
	quit    chan struct{} // closed by the first close: no pause is waited out any more
	idle    chan struct{} // made by close, closed when the goroutine ends
	count   WebhookStats
}

func newHook(rt leaf.Runtime, cfg Webhook, node string, log *lines) (*hook, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	if cfg.Timeout < 10*time.Millisecond || cfg.Timeout > time.Minute {
		return nil, leaf.BadField("webhook timeout", cfg.Timeout, "must be 10ms to 1m")
	}
	cfg.Client = cmp.Or(cfg.Client, jsonpost.NewClient())
	h := &hook{rt: rt, cfg: cfg, node: node, log: log, waiting: map[key]post{}, quit: make(chan struct{})}
	if err := h.setURL(cfg.URL); err != nil {
		return nil, err
	}
	h.base, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// setURL sends what follows there.
func (h *hook) setURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: webhook url: must begin with http:// or https:// and name a host", leaf.ErrBadRequest) // not shown: it may hold a token
	}
	h.url.Store(&text)
	return nil
}

// push gives the newest state of an alarm to the goroutine. One that still waits
// is replaced and keeps its place.
func (h *hook) push(now time.Time, a leaf.Alarm, what change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		h.count.Dropped++
		return
	}
	k := key{a.Code, a.Subject}
	if _, ok := h.waiting[k]; !ok {
		if len(h.queue) >= maxQueue {
			delete(h.waiting, h.queue[0])
			h.queue = h.queue[1:]
			h.count.Dropped++
		}
		h.queue = append(h.queue, k)
	}
	h.waiting[k] = post{Code: a.Code, Subject: a.Subject, Text: a.Text, Do: a.Do, State: what, Node: h.node, Time: now}
	if !h.running {
		h.running = true
		h.rt.Go(h.run)
	}
}

func (h *hook) run() {
	for {
		h.mu.Lock()
		if len(h.queue) == 0 || h.base.Err() != nil {
			h.running = false
			if h.idle != nil {
				close(h.idle)
				h.idle = nil
			}
			h.mu.Unlock()
			return
		}
		k := h.queue[0]
		p := h.waiting[k]
		h.queue = h.queue[1:]
		delete(h.waiting, k)
		h.mu.Unlock()
		h.deliver(p)
	}
}

// errFinal: the receiver does not want this post; a repetition would not help.
var errFinal = errors.New("refused for good")

// deliver sends one post until it is accepted, refused for good, or, once the
// board is being closed, has failed.
func (h *hook) deliver(p post) {
	for failures := 1; ; failures++ {
		err := h.send(p)
		h.mu.Lock()
		if err == nil {
			h.count.Sent++
			h.mu.Unlock()
			return
		}
		h.count.Failed++
		final := errors.Is(err, errFinal) || h.closed || h.base.Err() != nil
		if final {
			h.count.Dropped++
		}
		h.mu.Unlock()
		if failures == 1 || final {
			h.log.warn("an alarm was not delivered", "code", p.Code, "subject", p.Subject, "retry", !final, "error", err)
		}
		if final {
			return
		}
		pause := min(firstPause<<min(failures-1, 10), longestPause)
		_ = h.rt.Wait(h.base, h.quit, h.rt.Jitter(pause))
	}
}

// send makes one attempt. Errors do not show the URL, which may hold a token.
func (h *hook) send(p post) error {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	s, err := jsonpost.Send(ctx, h.cfg.Client, *h.url.Load(), p)
	switch {
	case errors.Is(err, jsonpost.ErrRequest):
		return fmt.Errorf("%w: %w", errFinal, err)
	case err != nil:
		return err
	case s >= 200 && s < 300:
		return nil
	case s >= 300 && s < 500 && s != http.StatusRequestTimeout && s != http.StatusTooManyRequests:
		return fmt.Errorf("%w: HTTP status %d", errFinal, s)
	default:
		return fmt.Errorf("HTTP status %d", s)
	}
}

func (h *hook) stats() WebhookStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.count
	st.Waiting = len(h.queue)
	return st
}

// close gives each post that waits one more attempt, within ctx.
func (h *hook) close(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.quit)
	}
	var idle chan struct{}
	if h.running {
		if h.idle == nil {
			h.idle = make(chan struct{})
		}
		idle = h.idle
	}
	h.mu.Unlock()
	defer h.cfg.Client.CloseIdleConnections()
	defer h.cancel()
	if idle == nil {
		return nil
	}
	err := h.rt.Wait(ctx, idle, 0)
	if err == nil {
		return nil
	}
	h.cancel()
	_ = h.rt.Wait(context.Background(), idle, 0) // an attempt ends with its context
	h.mu.Lock()
	left := len(h.queue)
	h.count.Dropped += int64(left)
	h.queue, h.waiting = nil, map[key]post{}
	h.mu.Unlock()
	return fmt.Errorf("post alarms: %d were not sent: %w", left, err)
}
