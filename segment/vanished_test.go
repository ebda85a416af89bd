package segment_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// cutRows makes readings of the list lack the tags, or all.
func (s *store) cutRows(tags ...string) {
	s.set(func(s *store) {
		s.rows = func(all []segment.Row) []segment.Row {
			return slices.DeleteFunc(all, func(r segment.Row) bool { return len(tags) == 0 || slices.Contains(tags, r.Tag) })
		}
	})
}

func fourTags() *store {
	s := newStore()
	for _, tag := range []string{"a", "b", "c", "idle"} {
		s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 100})
	}
	return s
}

// TestListThatLacksMostTags: the stock of the tags is served on, an alarm lasts as long
// as they are missing, and all is well when the list is.
func TestListThatLacksMostTags(t *testing.T) {
	for name, cut := range map[string][]string{"empty": nil, "most": {"a", "b", "idle"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := fourTags(), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true})
				for _, tag := range []string{"a", "b", "c"} {
					drain(t, a, tag, 5)
				}
				synctest.Wait()
				loads := s.count()
				s.cutRows(cut...)
				time.Sleep(5 * time.Minute)
				al.want(t, "vanished default")
				if got := a.Status().Vanished; got != 1 {
					t.Errorf("counted %d, want 1", got)
				}
				for _, tag := range []string{"a", "b", "c"} {
					for want := int64(6); want <= 90; want++ {
						if id := next(t, a, tag); id != want {
							t.Fatalf("%s: ID %d, want %d: the stock was thrown away", tag, id, want)
						}
					}
				}
				s.heal()
				time.Sleep(2 * time.Minute)
				al.want(t)
				if n := a.Status().Tags; n != 4 {
					t.Errorf("%d tags, want 4", n)
				}
				if n := s.count(); n > loads+3 {
					t.Errorf("%d ranges were loaded meanwhile", n-loads)
				}
			})
		})
	}
}

// TestTableThatWasEmptied: loads find no rows either. Each tag is served to the end of its
// stock and unknown from then on; the last tag leaves, too.
func TestTableThatWasEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := fourTags(), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true})
		used := []string{"a", "b", "c"}
		for _, tag := range used {
			drain(t, a, tag, 15)
		}
		synctest.Wait() // two ranges of each are in memory
		for _, tag := range append(used, "idle") {
			s.Remove(tag)
		}
		time.Sleep(2 * time.Minute)
		for _, tag := range used {
			drain(t, a, tag, 150)
		}
		al.want(t, "vanished default")
		time.Sleep(2 * time.Minute)
		for _, tag := range used {
			drain(t, a, tag, 35)
			_, err := a.Next(t.Context(), tag)
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		time.Sleep(2 * time.Minute)
		if n := a.Status().Tags; n != 0 {
			t.Errorf("%d tags are left", n)
		}
		al.want(t, "vanished default") // until there is a row
		create(t, s, "fresh", 1)
		time.Sleep(2 * time.Minute)
		al.want(t)
		next(t, a, "fresh")
	})
}

// TestEmptiedTableAsTheAlarmSays: the rows are put back as the alarm says. No ID repeats, also of a tag whose numbers began
// anew shortly before: the tables of the operator have none of the new period yet.
func TestEmptiedTableAsTheAlarmSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al, ids := newStore(daily()), newAlarms(), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", Alarms: al})
		ids.add(t, "a", drain(t, a, "order", 25)...)
		synctest.Wait()
		s.Remove("order")
		time.Sleep(2 * time.Minute)
		typed := regexp.MustCompile(`put each row back into the database, with max_id (-?\d+), .* then run on any one node: leaf tag repair TAG,`).FindStringSubmatch(al.do(leaf.AlarmVanished, "default"))
		if typed == nil {
			t.Fatalf("the alarm says %q", al.do(leaf.AlarmVanished, "default"))
		}
		back := daily()
		back.MaxID, _ = strconv.ParseInt(typed[1], 10, 64)
		s.Put(back)
		b := node(t, s, nil, segment.Config{NodeID: "b", MaxWait: time.Second})
		if id, err := b.Next(t.Context(), "order"); err == nil {
			t.Errorf("%d was issued before the repair", id)
		}
		if _, err := b.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "b", drain(t, b, "order", 25)...)
		ids.add(t, "a", drain(t, a, "order", 25)...)
	})
}

// TestEmptiedTableBesideJavaAsTheAlarmSays: a Java server uses the table, too, and takes ranges whatever max_id is. What the alarm says
// of it is done. No ID repeats.
func TestEmptiedTableBesideJavaAsTheAlarmSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al, ids := newStore(row(10)), newAlarms(), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", Alarms: al, FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 25)...)
		synctest.Wait()
		end := javaTakes(t, s, ids)
		s.Remove("order")
		time.Sleep(2 * time.Minute)
		does, above := al.do(leaf.AlarmVanished, "default"), int64(0)
		back := row(10)
		back.MaxID = -1
		s.Put(back)
		switch {
		case !strings.Contains(does, "stop Java servers first"):
			javaTakes(t, s, ids)
		case strings.Contains(does, "count as nodes that are gone with their data directories"):
			above = end
		}
		if _, err := a.Repair(t.Context(), "order", above); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "a", drain(t, a, "order", 25)...)
	})
}

// TestTagsThatACommandHasDeleted: leaf tag delete takes most tags of a database, or its last ones.
// No other node calls an administrator for that.
func TestTagsThatACommandHasDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		byCommand []string
		withSQL   string
		again     bool // withSQL is a tag that a command has deleted before, and that was made again
		left      int
		want      []string
	}{
		"the last ones":              {byCommand: []string{"a", "b", "c", "idle"}},
		"most":                       {byCommand: []string{"a", "b", "idle"}, left: 1},
		"one with SQL":               {byCommand: []string{"b", "idle"}, withSQL: "a", left: 3, want: []string{"vanished default"}},
		"one made again, and by SQL": {byCommand: []string{"b", "idle"}, withSQL: "a", again: true, left: 3, want: []string{"vanished default"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := fourTags(), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true})
				remove := func(tag string) {
					if err := s.Delete(t.Context(), tag); err != nil {
						t.Fatal(err)
					}
				}
				if tt.again {
					remove(tt.withSQL)
					time.Sleep(2 * time.Minute)
					create(t, s, tt.withSQL, 1001)
				}
				for _, tag := range []string{"a", "b", "c"} {
					drain(t, a, tag, 5)
				}
				synctest.Wait()
				for _, tag := range tt.byCommand {
					remove(tag)
				}
				s.Remove(tt.withSQL)
				time.Sleep(2 * time.Minute)
				al.want(t, tt.want...)
				if st := a.Status(); st.Tags != tt.left || st.Vanished != int64(len(tt.want)) {
					t.Errorf("%d tags and %d alarms, want %d and %d", st.Tags, st.Vanished, tt.left, len(tt.want))
				}
			})
		})
	}
}

// TestRowThatCannotBeRead stops its own tag at most, and says so.
func TestRowThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := fourTags(), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true})
		drain(t, a, "a", 5)
		s.set(func(s *store) {
			s.rows = func(all []segment.Row) []segment.Row {
				for i := range all {
					if all[i].Tag == "a" {
						all[i] = segment.Row{Tag: "a", Problem: errors.New("column step is NULL")}
					}
				}
				return all
			}
		})
		create(t, s, "fresh", 1)
		time.Sleep(2 * time.Minute)
		al.want(t, "row a")
		if text := al.text("row", "a"); !strings.Contains(text, "column step is NULL") {
			t.Errorf("text %q", text)
		}
		wantReady(t, a, true, "")
		if n := a.Status().Tags; n != 5 {
			t.Errorf("%d tags, want 5: the other rows were read", n)
		}
		drain(t, a, "a", 50)
		s.heal()
		time.Sleep(2 * time.Minute)
		al.want(t)
	})
}

// TestRowThatIsMended: the alarm of a row ends when a reading shows that the row is right, also when the loads since then
// failed for another reason, or there were none. Whether the numbers of a row are used up a reading does not tell.
func TestRowThatIsMended(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  segment.Row
		ends bool
	}{
		{"a step of 0", segment.Row{Tag: "a", MaxID: 1}, true},
		{"numbers that are used up", segment.Row{Tag: "a", MaxID: segment.MaxMaxID - 1, Step: 10}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := newStore(tt.bad), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true})
				ask := func() { _, _ = a.Next(t.Context(), "a") }
				ask()
				al.want(t, "row a")
				s.set(func(s *store) {
					s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
						return segment.Reservation{}, errors.New("no answer")
					}
				})
				time.Sleep(30 * time.Second)
				ask()
				if tt.ends {
					s.Put(segment.Row{Tag: "a", MaxID: 1, Step: 10})
				}
				time.Sleep(2 * time.Minute)
				if raised := al.text("row", "a") != ""; raised == tt.ends {
					t.Errorf("the alarm is raised: %t", raised)
				}
			})
		})
	}
}

// TestOptionsThatCross: bounds of the step that were written by hand and cross each other
// are ignored, and an alarm says so until they are corrected or the row is gone.
func TestOptionsThatCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := newStore(), newAlarms()
		crossed := segment.Options{MinStep: 500, MaxStep: 10}
		for _, tag := range []string{"a", "gone", "late"} {
			s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 100, Options: crossed})
		}
		a := node(t, s, nil, segment.Config{Alarms: al})
		drain(t, a, "a", 150)
		al.want(t, "row a", "row gone", "row late")
		if text := al.text("row", "a"); !strings.Contains(text, "min_step") || !strings.Contains(text, "max_step=10") {
			t.Errorf("text %q", text)
		}
		s.Put(segment.Row{Tag: "a", MaxID: 10_001, Step: 100, Options: segment.Options{MinStep: 10, MaxStep: 500}})
		if err := s.Delete(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		s.Put(segment.Row{Tag: "late", MaxID: 1, Step: -1, Options: crossed})
		if _, err := a.Next(t.Context(), "late"); err == nil {
			t.Error("an ID of a row with step -1")
		}
		time.Sleep(2 * time.Minute)
		al.want(t, "row late")
		s.Put(segment.Row{Tag: "late", MaxID: 1, Step: 100, Options: crossed})
		time.Sleep(2 * time.Minute)
		next(t, a, "late")
		time.Sleep(2 * time.Minute)
		if text := al.text("row", "late"); !strings.Contains(text, "are ignored") {
			t.Errorf("text %q", text)
		}
	})
}

// TestRuleThatChanges while the node runs: it issues nothing of the database any more, and
// what a load brings that was under way is dropped. It goes on when the database is its
// own again.
func TestRuleThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := fourTags(), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true, LoadTimeout: 5 * time.Second})
		drain(t, a, "a", 50)
		handle := a.Tag("b")
		if _, err := handle.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(59 * time.Second)
		s.set(func(s *store) {
			s.onBind = func(context.Context, func() error) error { return segment.ErrRule }
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				r, err := do()
				time.Sleep(3 * time.Second)
				return r, err
			}
		})
		late := make(chan error)
		go func() {
			_, err := a.Next(t.Context(), "c") // its load begins before the rule is read
			late <- err
		}()
		wantErr(t, <-late, leaf.ErrNotReady)
		time.Sleep(5 * time.Second) // the load ends
		for _, tag := range []string{"a", "b", "c", "idle", "new"} {
			for range 3 {
				if id, err := a.Next(t.Context(), tag); err == nil {
					t.Fatalf("%s: issued %d of a database that belongs to another rule", tag, id)
				}
			}
		}
		if id, err := handle.Next(t.Context()); err == nil {
			t.Fatalf("the handle issued %d", id)
		}
		al.want(t, "rule default")
		wantReady(t, a, false, "belongs to another tag rule")
		if _, err := a.Repair(t.Context(), "a", 10_000); err == nil {
			t.Error("a repair wrote to it")
		}
		reserved := s.count()
		time.Sleep(10 * time.Minute)
		if n := s.count(); n != reserved {
			t.Errorf("%d ranges reserved", n-reserved)
		}
		s.heal()
		time.Sleep(2 * time.Minute)
		al.want(t)
		if id := next(t, a, "a"); id < 201 {
			t.Errorf("ID %d from memory that was to be dropped", id)
		}
	})
}
