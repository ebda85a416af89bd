package sqldb_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
)

// TestPausesBetweenDeadlocks: what ends by deadlocks is repeated with pauses, which let another
// transaction end first, and neither grow beyond 128 ms nor outlive the caller's deadline.
func TestPausesBetweenDeadlocks(t *testing.T) {
	t.Parallel()
	s := open(t, "mysql://root@127.0.0.1:1/leaf")
	deadlock := &mysql.MySQLError{Number: 1213}
	synctest.Test(t, func(t *testing.T) {
		begin, last, longest := time.Now(), time.Now(), time.Duration(0)
		calls := 0
		err := s.Again(t.Context(), func() error {
			longest = max(longest, time.Since(last))
			last = time.Now()
			if calls++; calls == 200 {
				return nil
			}
			return deadlock
		})
		if took := time.Since(begin); err != nil || took < 4*time.Second || longest > 128*time.Millisecond {
			t.Errorf("200 calls took %v, the longest pause %v, %v; want some seconds, and pauses up to 128 ms", took, longest, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		err = s.Again(ctx, func() error {
			if calls++; calls > 1000 { // which without pauses takes no time
				return nil
			}
			return deadlock
		})
		if took := time.Since(begin); err != error(deadlock) || took != time.Second { //nolint:errorlint // it is returned as it is
			t.Errorf("deadlocks until the deadline: %v after %v; want the error after 1 s", err, took)
		}
	})
}
