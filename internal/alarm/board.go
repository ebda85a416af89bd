package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Config tunes a Board. The zero value of each field means its default.
type Config struct {
	// Node names this node in the posts of the webhook.
	Node string

	// Webhook receives the alarms; with an empty URL there is none.
	Webhook Webhook

	// Logger receives the lines. Default: discard.
	Logger *slog.Logger

	// Runtime is the clock and scheduler. Default: leaf.SystemRuntime.
	Runtime leaf.Runtime
}

// Any is the subject that stands for all alarms of a code that are counted only.
const Any = "*"

// codes are those of package leaf, so that each has a counter from the start.
var codes = []string{
	leaf.AlarmRegress, leaf.AlarmRow, leaf.AlarmStore, leaf.AlarmExhausted, leaf.AlarmDisk,
	leaf.AlarmFile, leaf.AlarmVanished, leaf.AlarmRule, leaf.AlarmFence, leaf.AlarmClaim, leaf.AlarmClock, leaf.AlarmAuth, leaf.AlarmRegistry, leaf.AlarmConfiguration, leaf.AlarmFormat,
}

// Board is a leaf.Alarms. Make it with New, and Close it. All methods are safe for
// concurrent use.
type Board struct {
	cfg  Config
	rt   leaf.Runtime
	seed maphash.Seed
	log  *lines
	hook *hook // nil: no webhook

	mu     sync.Mutex // guards what follows; lines.mu and hook.mu may be taken under it
	states map[string]*state
}

var _ leaf.Alarms = (*Board)(nil)

// state is what is known of one code.
type state struct {
	raised int64
	named  map[string]*active
	rest   map[uint64]struct{} // hashes of the subjects that are counted only
}

type active struct {
	alarm  leaf.Alarm
	logged time.Time // when its last line was written
}

// maxNamed is how many alarms of one code are kept by name; the rest is counted.
const maxNamed = 1000

// maxCounted bounds the memory for subjects that are counted only, per code.
const maxCounted = 1 << 20

// relog is the shortest time between two lines of an alarm that stays.
const relog = time.Minute

// New returns a Board without alarms. Error: leaf.ErrBadRequest if a field is
// outside its limits.
func New(cfg Config) (*Board, error) {
	if cfg.Runtime == nil {
		cfg.Runtime = leaf.SystemRuntime()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Board{cfg: cfg, rt: cfg.Runtime, seed: maphash.MakeSeed(), states: map[string]*state{}}
	b.log = newLines(cfg.Runtime, cfg.Logger)
	if cfg.Webhook.URL != "" {
		var err error
		if b.hook, err = newHook(cfg.Runtime, cfg.Webhook, cfg.Node, b.log); err != nil {
			return nil, err
		}
	}
	for _, code := range codes {
		b.state(code)
	}
	return b, nil
}

// state returns the state of a code. b.mu is held, or b is not shared yet.
func (b *Board) state(code string) *state {
	s := b.states[code]
	if s == nil {
		s = &state{named: map[string]*active{}, rest: map[uint64]struct{}{}}
		b.states[code] = s
	}
	return s
}

// Raise implements leaf.Alarms.
func (b *Board) Raise(a leaf.Alarm) {
	now := b.rt.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state(a.Code)
	if old := s.named[a.Subject]; old != nil {
		changed := old.alarm != a
		old.alarm = a
		if changed && now.Sub(old.logged) >= relog {
			old.logged = now
			b.log.alarm(now, a, raised)
		}
		return
	}
	id := maphash.String(b.seed, a.Subject)
	_, counted := s.rest[id]
	if len(s.named) >= maxNamed {
		if !counted && len(s.rest) < maxCounted {
			s.raised++
			s.rest[id] = struct{}{}
			if len(s.rest) == 1 {
				b.tell(now, s.summary(a.Code), raised)
			}
		}
		return
	}
	if counted { // it has a place now
		b.uncount(now, a.Code, s, id)
	} else {
		s.raised++
	}
	s.named[a.Subject] = &active{alarm: a, logged: now}
	b.tell(now, a, raised)
}

// Clear implements leaf.Alarms.
func (b *Board) Clear(code, subject string) {
	now := b.rt.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[code]
	if s == nil {
		return
	}
	if old := s.named[subject]; old != nil {
		delete(s.named, subject)
		b.tell(now, old.alarm, cleared)
		return
	}
	if id := maphash.String(b.seed, subject); len(s.rest) > 0 {
		b.uncount(now, code, s, id)
	}
}

// uncount takes a subject off those that are counted only.
func (b *Board) uncount(now time.Time, code string, s *state, id uint64) {
	before := len(s.rest)
	delete(s.rest, id)
	if before == 1 && len(s.rest) == 0 {
		b.tell(now, leaf.Alarm{Code: code, Subject: Any, Text: "no alarm is left that is counted only"}, cleared)
	}
}

func (s *state) summary(code string) leaf.Alarm {
	return leaf.Alarm{
		Code: code, Subject: Any, Text: fmt.Sprintf("%d or more further alarms of this kind are counted, not named", len(s.rest)),
		Do: "look for the one cause that they have in common",
	}
}

// tell passes a change on. b.mu is held, so that all see the changes in one order.
func (b *Board) tell(now time.Time, a leaf.Alarm, what change) {
	b.log.alarm(now, a, what)
	if b.hook != nil {
		b.hook.push(now, a, what)
	}
}

// change is what happened to an alarm.
type change string

const (
	raised  change = "raised"
	cleared change = "cleared"
)

// Active returns the active alarms, sorted by code and subject. Those that are
// counted only are one alarm with the subject [Any] per code.
func (b *Board) Active() []leaf.Alarm {
	b.mu.Lock()
	var all []leaf.Alarm
	for code, s := range b.states {
		for _, a := range s.named {
			all = append(all, a.alarm)
		}
		if len(s.rest) > 0 {
			all = append(all, s.summary(code))
		}
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y leaf.Alarm) int {
		return cmp.Or(cmp.Compare(x.Code, y.Code), cmp.Compare(x.Subject, y.Subject))
	})
	return all
}

// Count is the counters of one code, for metrics.
type Count struct {
	Code   string
	Raised int64 // alarms that began since New
	Active int   // alarms that are active, named or counted
}

// Counts returns the counters of all codes of package leaf, and of others that were
// used, sorted by code.
func (b *Board) Counts() []Count {
	b.mu.Lock()
	all := make([]Count, 0, len(b.states))
	for code, s := range b.states {
		all = append(all, Count{Code: code, Raised: s.raised, Active: len(s.named) + len(s.rest)})
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y Count) int { return cmp.Compare(x.Code, y.Code) })
	return all
}

// WebhookStats are the counters of the webhook since New.
type WebhookStats struct {
	Sent    int64 // posts that were answered with 2xx
	Failed  int64 // attempts that were not
	Dropped int64 // alarms given up: the queue was full, the answer was final, or Close ended
	Waiting int   // alarms that wait
}

// Webhook returns the counters of the webhook; all are zero if there is none.
func (b *Board) Webhook() WebhookStats {
	if b.hook == nil {
		return WebhookStats{}
	}
	return b.hook.stats()
}

// SetWebhook sends the alarms to another URL from the next attempt on. Errors: leaf.ErrBadRequest
// for a URL that Webhook must not have; leaf.ErrDisabled if the Board has no webhook.
func (b *Board) SetWebhook(url string) error {
	if b.hook == nil {
		return fmt.Errorf("%w: no webhook", leaf.ErrDisabled)
	}
	return b.hook.setURL(url)
}

// Close writes and sends what waits, as long as ctx allows; alarms that come later
// change the list and the counters only. It may be called again, and then waits as
// the first one does.
func (b *Board) Close(ctx context.Context) error {
	var err error
	if b.hook != nil {
		err = b.hook.close(ctx)
	}
	return errors.Join(err, b.log.close(ctx))
}
