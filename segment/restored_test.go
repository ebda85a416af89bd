package segment_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// besideALostNode lets node a take some IDs, and then a node that ends and is gone with its data
// directory. It returns the highest ID in tables.
func besideALostNode(t *testing.T, s segment.Store, d *disk, ids *ledger, a *segment.Allocator) (inTables int64) {
	t.Helper()
	ids.add(t, "a", drain(t, a, "order", 5)...)
	synctest.Wait() // the range that follows is loaded
	b := node(t, s, d, segment.Config{NodeID: "b", FixedStep: true})
	for _, id := range drain(t, b, "order", 200) {
		ids.add(t, "b", id)
		inTables = max(inTables, id)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return inTables
}

// TestRegressBesideALostDirectory: a node has stopped cleanly, and its data directory is gone, as in
// a container without a volume. A backup is put back. The operator does what the alarm of another
// node says, and no number repeats: that alone knows of a directory that nobody can ask.
func TestRegressBesideALostDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids, al := newStore(row(10)), newLedger(), newAlarms()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, Alarms: al})
		inTables := besideALostNode(t, s, nil, ids, a)
		restored(s, 11)
		useUntil(t, a, ids, leaf.ErrRegress)
		above := int64(0)
		if strings.Contains(al.do(leaf.AlarmRegress, "order"), "If a node is gone with its data directory, or") {
			above = inTables + 3*10
		}
		if _, err := a.Repair(t.Context(), "order", above); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "a after the repair", drain(t, a, "order", 300)...)
	})
}

// TestRegressBesideJavaAsTheAlarmSays: a Java server has taken ranges before a backup is put back. What the alarm says of it is done. No
// number repeats: no node knows of these ranges.
func TestRegressBesideJavaAsTheAlarmSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids, al := newStore(row(10)), newLedger(), newAlarms()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, Alarms: al})
		ids.add(t, "a", drain(t, a, "order", 5)...)
		synctest.Wait() // the range that follows is loaded
		inTables := int64(0)
		for range 200 {
			inTables = javaTakes(t, s, ids) - 1
		}
		restored(s, 11)
		useUntil(t, a, ids, leaf.ErrRegress)
		above := int64(0)
		if strings.Contains(al.do(leaf.AlarmRegress, "order"), "or Java servers have taken ranges, which must stop first, run: leaf tag repair TAG --above NUMBER") {
			above = inTables + 3*10
		}
		if _, err := a.Repair(t.Context(), "order", above); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "a after the repair", drain(t, a, "order", 300)...)
	})
}

// javaTakes lets a Java server take the next range of the tag order and issue it. It returns the end of the range.
func javaTakes(t *testing.T, s *store, ids *ledger) (end int64) {
	t.Helper()
	r, err := s.Lookup(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	for id := range r.Step {
		ids.add(t, "Java", r.MaxID+id)
	}
	r.MaxID += r.Step
	s.Put(r)
	return r.MaxID
}

// TestRestoredRowIsFound: the row of the backup lies above all that one node took, and below what
// another one took, which needs no range for long. That one finds the loss when it reads the rows,
// and both stop, also if it has just been started again and was asked for nothing. Clients come
// when the tag is repaired, as docs/OPERATIONS.md says, and no number repeats.
func TestRestoredRowIsFound(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, ids, d := newStore(row(10)), newLedger(), newDisk()
			a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
			config := segment.Config{NodeID: "b", FixedStep: true}
			b := node(t, s, d, config)
			ids.add(t, "a", drain(t, a, "order", 1)...)
			ids.add(t, "b", drain(t, b, "order", 200)...)
			synctest.Wait()
			if restarts {
				if err := b.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			restored(s, 91)
			if restarts {
				d.set(func(d *disk) { delete(d.files, "recent.json") }) // no range is loaded for a tag that was used
				b = node(t, s, d, config)
			}
			time.Sleep(2 * time.Minute) // every node reads the rows
			for name, n := range map[string]*segment.Allocator{"a": a, "b": b} {
				if !n.Mark("order").Latched {
					t.Errorf("node %s has not latched the tag", name)
				}
			}
			if _, err := a.Repair(t.Context(), "order", 0); err != nil {
				t.Fatal(err)
			}
			ids.add(t, "a after the repair", drain(t, a, "order", 100)...)
			ids.add(t, "b after the repair", drain(t, b, "order", 100)...)
		})
	}
}

// TestRestoreUnderAYoungFenceAsTheDocumentSays: the database is restored from a backup, and the cluster fence was wiped since the backup
// was made. The nodes that issued were pods without a volume. No tag latches. What docs/OPERATIONS.md says is done, and no number
// repeats: a fence that knows too little is none.
func TestRestoreUnderAYoungFenceAsTheDocumentSays(t *testing.T) {
	document, err := os.ReadFile("../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	excepted := regexp.MustCompile(`All\s+this\s+holds\s+only\s+for\s+a\s+fence\s+that\s+all\s+nodes\s+had\s+before\s+the\s+backup\s+was\s+made,\s+with\s+the\s+same\s+name\s+and\s+the\s+policy\s+.refuse.,\s+and\s+that\s+has\s+not\s+been\s+wiped\s+or\s+restored\s+since`)
	synctest.Test(t, func(t *testing.T) {
		ids := newLedger()
		gone := node(t, newStore(row(10)), nil, fenced("a", memory.NewFence(), nil))
		inTables := drain(t, gone, "order", 200)
		ids.add(t, "a", inTables...)
		closeNode(t, gone)

		al := newAlarms()
		b := node(t, newStore(row(10)), nil, fenced("b", memory.NewFence(), al))
		al.want(t) // nothing is latched
		if excepted.Match(document) {
			if _, err := b.Repair(t.Context(), "order", slices.Max(inTables)+3*10); err != nil {
				t.Fatal(err)
			}
		}
		ids.add(t, "b", drain(t, b, "order", 300)...)
	})
}

// TestReadingOfAReplica: behind a proxy a replica that lags answers when the rows are read. That
// stops no tag, and costs a range.
func TestReadingOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{FixedStep: true})
		drain(t, a, "order", 25)
		synctest.Wait()
		before := s.count()
		s.set(func(s *store) {
			s.rows = func([]segment.Row) []segment.Row { return []segment.Row{{Tag: "order", MaxID: 11, Step: 10}} }
		})
		time.Sleep(10 * time.Minute)
		if m := a.Mark("order"); m.Latched || s.count() > before+1 {
			t.Errorf("mark %+v, %d more loads; want it served, and one load", m, s.count()-before)
		}
		drain(t, a, "order", 100)
	})
}

// TestCreateBesideALostDirectory: a row is deleted with SQL, and the node that took the highest
// ranges is gone with its data directory, or stopped. The operator creates the tag again as the refusal
// says, and no number repeats.
func TestCreateBesideALostDirectory(t *testing.T) {
	for name, stopped := range map[string]bool{"lost": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { createBesideALostNode(t, stopped) })
		})
	}
}

// TestCreateBesideALostDirectoryOfNoTable: as above, and no number of the node that is gone is in a table yet. What another
// node has told is higher than all that are.
func TestCreateBesideALostDirectoryOfNoTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		inTables := int64(0)
		for _, id := range drain(t, a, "order", 5) {
			ids.add(t, "a", id)
			inTables = max(inTables, id)
		}
		synctest.Wait() // the range that follows is loaded
		const held = 5  // by clients
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		ids.add(t, "b", drain(t, b, "order", held)...)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Remove("order")
		time.Sleep(2 * time.Minute)
		createAsSaid(t, s, segment.Options{}, inTables, held+3*10*2)
		time.Sleep(2 * time.Minute)
		ids.add(t, "a", drain(t, a, "order", 100)...)
	})
}

// TestCreateBesideJavaAsTheTextSays: a row is deleted with SQL, and a Java server took the highest ranges, which no node knows. The
// operator creates the tag again as the refusal says, and no number repeats.
func TestCreateBesideJavaAsTheTextSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 5)...)
		synctest.Wait() // the range that follows is loaded
		inTables := int64(0)
		for range 20 {
			inTables = javaTakes(t, s, ids) - 1
		}
		s.Remove("order")
		time.Sleep(2 * time.Minute)
		again := segment.NewRow{Tag: "order", Start: 1, Step: 10}
		err := s.Create(t.Context(), again)
		wantErr(t, err, leaf.ErrConflict)
		again.Start = 21 // all that the node has told
		if strings.Contains(err.Error(), "or Java servers have taken ranges, take this start or the highest number of the tag in your own tables") {
			again.Start = inTables + 3*10
		}
		if err := s.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		ids.add(t, "a", drain(t, a, "order", 300)...)
	})
}

// createAsSaid creates the tag again beside a node that is gone with its data directory, as the refusal of a low start says.
func createAsSaid(t *testing.T, s *store, o segment.Options, inTables, add int64) {
	t.Helper()
	again := segment.NewRow{Tag: "order", Start: 1, Step: 10, Options: o}
	err := s.Create(t.Context(), again)
	wantErr(t, err, leaf.ErrConflict)
	_, says, _ := strings.Cut(err.Error(), "use --start ")
	low, _, _ := strings.Cut(says, " ")
	if again.Start, err = strconv.ParseInt(low, 10, 64); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(says, "take this start or the highest number of the tag in your own tables, whichever is higher, and use --start with that number plus three times") {
		again.Start = max(again.Start, inTables) + add
	}
	if err := s.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
}

func createBesideALostNode(t *testing.T, stopped bool) {
	t.Helper()
	s, ids, d := newStore(row(10)), newLedger(), newDisk()
	a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
	inTables := besideALostNode(t, s, d, ids, a)
	s.Remove("order")
	time.Sleep(2 * time.Minute) // a tells where its ranges end
	again := segment.NewRow{Tag: "order", Start: 1, Step: 10}
	refused := func() (says string) {
		t.Helper()
		err := s.Create(t.Context(), again)
		wantErr(t, err, leaf.ErrConflict)
		_, says, _ = strings.Cut(err.Error(), "use --start ")
		low, _, _ := strings.Cut(says, " ")
		if again.Start, err = strconv.ParseInt(strings.TrimSuffix(low, "."), 10, 64); err != nil {
			t.Fatal(err)
		}
		return says
	}
	says := refused()
	switch {
	case !stopped && strings.Contains(says, "If one is gone with its data directory, or Java servers have taken ranges, take this start or the highest number of the tag in your own tables"):
		again.Start = max(again.Start, inTables+3*10*2)
	case stopped && strings.Contains(says, "a node that is stopped, or cut off from the database, may know a higher number: start it, or bring it back, and run the command again"):
		node(t, s, d, segment.Config{NodeID: "b", FixedStep: true})
		time.Sleep(2 * time.Minute)
		refused()
	}
	if err := s.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Minute)
	ids.add(t, "a", drain(t, a, "order", 300)...)
}

// TestRowOfALatchedTag: a Java server, which has no fence, takes the ranges of a tag after a repair, as
// "Back to Java" in docs/MIGRATION.md says. Before it, the row led to numbers that were in use.
func TestRowOfALatchedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 200)...)
		synctest.Wait()
		restored(s, 91)
		useUntil(t, a, ids, leaf.ErrRegress)
		if behind := s.maxID(t, "order"); behind > 200 {
			t.Errorf("the row is at %d: the document need not say this", behind)
		}
		if _, err := a.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		java, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Step: 10, Length: 10, Min: 1, Max: segment.MaxStep})
		if err != nil {
			t.Fatal(err)
		}
		for id := range leaf.IDs([]leaf.Range{java.Range}) {
			ids.add(t, "java", id)
		}
	})
}
