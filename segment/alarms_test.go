package segment_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// alarms is a leaf.Alarms that remembers.
type alarms struct {
	mu     sync.Mutex
	active map[string]leaf.Alarm
	events []string // "+code subject" and "-code subject"
}

func newAlarms() *alarms { return &alarms{active: map[string]leaf.Alarm{}} }

func (l *alarms) Raise(a leaf.Alarm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := a.Code + " " + a.Subject
	if _, ok := l.active[k]; !ok {
		l.events = append(l.events, "+"+k)
	}
	l.active[k] = a
}

func (l *alarms) Clear(code, subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := code + " " + subject
	if _, ok := l.active[k]; ok {
		l.events = append(l.events, "-"+k)
	}
	delete(l.active, k)
}

// want fails unless exactly these alarms, "code subject", are active.
func (l *alarms) want(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := []string{}
	for k, a := range l.active {
		got = append(got, k)
		if a.Text == "" || a.Do == "" || strings.Contains(a.Text+a.Do, "\n") {
			t.Errorf("alarm %+v: want one line each of text and advice", a)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("active alarms %q, want %q; events %q", got, want, l.events)
	}
}

func (l *alarms) text(code, subject string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[code+" "+subject].Text
}

func (l *alarms) do(code, subject string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[code+" "+subject].Do
}

func (l *alarms) history() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// TestAlarmOfARegress lasts over a restart, until the repair.
func TestAlarmOfARegress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, al := newStore(row(10)), newDisk(), newAlarms()
		a := node(t, s, d, segment.Config{Alarms: al, FixedStep: true})
		drain(t, a, "order", 5)
		synctest.Wait()
		al.want(t)
		s.Put(row(10))
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		al.want(t, "regress order")
		if text := al.text("regress", "order"); !strings.Contains(text, "store went backwards") || !strings.Contains(text, "[1, 11)") || !strings.Contains(text, "up to 21") {
			t.Errorf("text %q", text)
		}
		closeNode(t, a)

		al = newAlarms()
		a = node(t, s, d, segment.Config{Alarms: al})
		al.want(t, "regress order")
		if _, err := a.Repair(t.Context(), "order", 500); err != nil {
			t.Fatal(err)
		}
		al.want(t)
		next(t, a, "order")
	})
}

// TestAlarmOfARow ends when the row is corrected: with the next load, with the sync
// that sees it, or with the row.
func TestAlarmOfARow(t *testing.T) {
	for _, c := range []struct {
		name string
		mend func(t *testing.T, a *segment.Allocator, s *store)
	}{
		{"next load", func(t *testing.T, a *segment.Allocator, s *store) {
			s.Put(row(10))
			time.Sleep(time.Second)
			next(t, a, "order")
		}},
		{"sync", func(_ *testing.T, _ *segment.Allocator, s *store) {
			s.Put(row(10))
			time.Sleep(2 * time.Minute)
		}},
		{"deletion", func(t *testing.T, _ *segment.Allocator, s *store) {
			if err := s.Delete(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := newStore(row(-5), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al})
				al.want(t) // nobody asked for it yet
				_, err := a.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrInvalidRow)
				time.Sleep(5 * time.Minute)
				al.want(t, "row order")
				c.mend(t, a, s)
				synctest.Wait()
				al.want(t)
			})
		})
	}
	t.Run("used up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, al := newStore(segment.Row{Tag: "order", MaxID: segment.MaxMaxID - 5, Step: 10}), newAlarms()
			a := node(t, s, nil, segment.Config{Alarms: al})
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrOverflow)
			time.Sleep(5 * time.Minute)
			al.want(t, "row order")
		})
	})
}

// TestAlarmOfAStore begins when syncs or the loads of several tags fail, not at the
// first load that does, and ends when the store answers.
func TestAlarmOfAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newAlarms()
		s.breakDown()
		a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true})
		al.want(t, "store default") // down at the start
		s.heal()
		time.Sleep(time.Second)
		al.want(t)

		drain(t, a, "order", 1)
		drain(t, a, "cart", 1)
		synctest.Wait()
		s.breakDown()
		for _, tag := range []string{"order", "cart"} {
			for range 30 { // to the end of the stock
				if _, err := a.Next(t.Context(), tag); err != nil {
					wantErr(t, err, leaf.ErrExhausted)
					break
				}
			}
			if tag == "order" {
				al.want(t, "exhausted order") // one tag says nothing about the database
			}
		}
		al.want(t, "exhausted cart", "exhausted order", "store default")
		served := func(tag string) {
			for { // the queue may be in the middle of a back-off
				if _, err := a.Next(t.Context(), tag); err == nil {
					break
				} else {
					wantErr(t, err, leaf.ErrExhausted)
				}
			}
			synctest.Wait()
		}
		s.heal()
		s.set(func(s *store) { // which of the tags comes first is open, so one of them is held up
			s.onReserve = func(_ context.Context, req segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				if req.Tag == "cart" {
					return segment.Reservation{}, errDown
				}
				return do()
			}
		})
		served("order")
		al.want(t, "exhausted cart")
		s.heal()
		served("cart")
		al.want(t)

		s.breakDown()
		time.Sleep(2 * time.Minute) // only the sync notices
		al.want(t, "store default")
		if text := al.text("store", "default"); !strings.Contains(text, "connection refused") {
			t.Errorf("text %q does not say why", text)
		}
		s.heal()
		time.Sleep(2 * time.Minute)
		al.want(t)
	})
}

// TestAlarmWithoutCallers: a caller is rejected while its load waits for that of another tag, and no other caller comes.
// Its load has left the queue with it. The alarm ends as soon as a range can be loaded.
func TestAlarmWithoutCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cart := row(10)
		cart.Tag = "cart"
		s, al := newStore(row(10), cart), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true, LoadTimeout: time.Minute, MaxLoads: 1})
		drain(t, a, "order", 2)
		drain(t, a, "cart", 2)
		synctest.Wait() // [1, 21) of both is in stock
		stuck, release := stuckOnce(s, nil)
		drain(t, a, "cart", 18)
		<-stuck
		_, err := a.NextN(t.Context(), "order", 30)
		wantErr(t, err, leaf.ErrExhausted)
		al.want(t, "exhausted order")
		close(release)
		time.Sleep(5 * time.Second)
		al.want(t)
	})
}

// TestAlarmOfExhaustion is for callers who were rejected, not for those who left.
func TestAlarmOfExhaustion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := newStore(row(10)), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true, LoadTimeout: time.Minute})
		drain(t, a, "order", 2)
		synctest.Wait() // [1, 21) is in stock
		stuck, release := stuckOnce(s, nil)
		drain(t, a, "order", 18)
		<-stuck
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err := a.Next(ctx, "order")
		wantErr(t, err, context.Canceled)
		al.want(t)
		_, err = a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrExhausted)
		al.want(t, "exhausted order")
		close(release)
		next(t, a, "order")
		al.want(t)
	})
}

// TestAlarmOfTheDisk, and a disk that fails is no fault of the store.
func TestAlarmOfTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newDisk(), newAlarms()
		a := node(t, s, d, segment.Config{Alarms: al, MaxWait: time.Second})
		broken := errors.New("no space left on device")
		d.set(func(d *disk) {
			d.onSync = func() error { return broken }
			d.onReplace = func(string) error { return broken }
		})
		for _, tag := range []string{"order", "cart"} {
			_, err := a.Next(t.Context(), tag)
			wantErr(t, err, leaf.ErrNotReady)
		}
		al.want(t, "disk fence")
		if text := al.text("disk", "fence"); !strings.Contains(text, "no space left") {
			t.Errorf("text %q does not say why", text)
		}
		d.set(func(d *disk) { d.onSync, d.onReplace = nil, nil })
		next(t, a, "order")
		al.want(t)
	})
}

// TestAlarmsWithoutAReceiver are lines of the log, once each.
func TestAlarmsWithoutAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newStore(row(-5))
		a := node(t, s, nil, segment.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		for range 5 {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrInvalidRow)
			time.Sleep(time.Minute)
		}
		closeNode(t, a)
		if n := strings.Count(out.String(), "level=ERROR"); n != 1 || !strings.Contains(out.String(), "code=row subject=order do=") {
			t.Errorf("%d lines at ERROR:\n%s", n, out.String())
		}
	})
}

// TestTextOfAStore: the text says what is known to fail, and no more.
func TestTextOfAStore(t *testing.T) {
	long.Plain(t)
	const list, nothing, loads = "the list of tags of store \"default\" cannot be read", "store \"default\" cannot be used", "no range can be loaded from store \"default\""
	denied := errors.New("SELECT command denied")
	for _, tt := range []struct {
		name  string
		fault func(s *store)
		ask   bool // callers use up the stock, so that loads are needed
		text  string
		why   string
	}{
		{"reading the list is denied", func(s *store) {
			s.set(func(s *store) { s.onRows = func(context.Context) error { return denied } })
		}, true, list, "SELECT command denied"},
		{"reading the list takes too long", func(s *store) {
			s.set(func(s *store) { s.onRows = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() } })
		}, true, list, "deadline"},
		{"nothing works, and no load was tried", (*store).breakDown, false, list, "connection refused"},
		{"nothing works", (*store).breakDown, true, nothing, "connection refused"},
		{"loads fail", func(s *store) { s.readOnly() }, true, loads, "UPDATE command denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true})
				drain(t, a, "order", 1)
				drain(t, a, "cart", 1)
				synctest.Wait()
				tt.fault(s)
				if tt.ask {
					for range 100 {
						_, _ = a.Next(t.Context(), "order")
						_, _ = a.Next(t.Context(), "cart")
					}
				}
				time.Sleep(2 * time.Minute)
				text := al.text("store", "default")
				if !strings.HasPrefix(text, tt.text) || !strings.Contains(text, tt.why) {
					t.Errorf("text %q, want %q and the cause %q", text, tt.text, tt.why)
				}
				if reasons := strings.Join(a.Status().Reasons, "; "); tt.text == list && strings.Contains(text+reasons, "from memory") {
					t.Errorf("text %q, reasons %q: loads are not known to fail", text, reasons)
				}
			})
		})
	}
	t.Run("down at the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, al := newStore(row(10)), newAlarms()
			s.breakDown()
			node(t, s, nil, segment.Config{Alarms: al})
			if text := al.text("store", "default"); !strings.HasPrefix(text, nothing) {
				t.Errorf("text %q", text)
			}
		})
	})
}
