package discovery_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
)

// TestDirectoryThatNeverReturns: a driver heeds no context, and one of its calls never returns.
// The log and the status say so, no second call of the kind begins, and Withdraw and Close end.
// When the driver returns, the announcements go on by themselves.
func TestDirectoryThatNeverReturns(t *testing.T) {
	for _, stuck := range []string{"put", "remove"} {
		t.Run(stuck, func(t *testing.T) {
			announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, log *bytes.Buffer) {
				hang := func() (release func()) {
					free := make(chan struct{})
					f.set(func(_ context.Context, call string) error {
						if call == stuck {
							<-free
						}
						return nil
					})
					return func() { close(free); synctest.Wait() }
				}
				a.Start()
				synctest.Wait()
				release := hang()
				if stuck == "put" {
					time.Sleep(2 * ttl)
					synctest.Wait()
					if err := a.Status().Err; err == nil || !strings.Contains(err.Error(), "has not returned") || !strings.Contains(log.String(), "has not returned") {
						t.Errorf("status %v; log %s", err, log)
					}
					release()
					time.Sleep(ttl)
					synctest.Wait()
					if f.weight(t) != 100 || a.Status().Err != nil {
						t.Errorf("not published again: %+v", a.Status())
					}
					release = hang()
				}
				before := len(f.made(stuck))
				time.Sleep(ttl / 3)
				start := time.Now()
				_ = a.Withdraw(within(t, 2*time.Second)) // in vain
				a.Close()
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("Withdraw and Close took %v", took)
				}
				if made := len(f.made(stuck)) - before; made != 1 {
					t.Errorf("%d calls that do not return, want 1", made)
				}
				release()
			})
		})
	}
}
