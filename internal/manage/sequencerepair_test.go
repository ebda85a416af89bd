package manage_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// latchedSequence is a sequence on two nodes, which have latched its first rows, the last of them without a row.
func latchedSequence(t *testing.T, latched int) (*memory.Store, [2]*segment.Allocator, manage.Backend) {
	t.Helper()
	s := memory.New()
	for section := range sequence.Sections {
		s.Put(segment.Row{Tag: sequence.RowName("chat", section), MaxID: 1, Step: 100, Options: segment.Options{Order: segment.OrderStrict, FixedStep: true}})
	}
	s.Remove(sequence.RowName("chat", latched-1))
	fence := &silentFence{Fence: memory.NewFence()}
	a, b := node(t, s, fence)
	other, _ := node(t, s, fence)
	for section := range latched {
		if err := s.Post(t.Context(), segment.Notice{Tag: sequence.RowName("chat", section), Regress: int64(5000 + section)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Second)
	return s, [2]*segment.Allocator{a, other}, b
}

// repairAll asks for part after part.
func repairAll(t *testing.T, b manage.Backend, q manage.RepairSequence, plan bool) (parts int, rows []manage.RowRepair) {
	t.Helper()
	for {
		var request any = q
		if plan {
			request = manage.PlanSequenceRepair(q)
		}
		reply, err := b.Do(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		part := reply.(manage.SequenceRepair)
		parts, rows = parts+1, append(rows, part.Rows...)
		if q.From = part.Next; q.From == 0 {
			return parts, rows
		}
	}
}

// TestRepairSequence: the latched rows are repaired, many at a time, and no other row moves. A plan moves nothing.
func TestRepairSequence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const latched = 70
		s, nodes, b := latchedSequence(t, latched)
		q := manage.RepairSequence{Name: "chat", Rows: manage.RowsLatched}
		if parts, rows := repairAll(t, b, q, true); parts != 2 || len(rows) != latched || rows[0].Plan.First != 5001 || !nodes[0].Mark(rows[0].Tag).Latched {
			t.Fatalf("the plan has %d rows in %d parts: %+v", len(rows), parts, rows[0])
		}
		began := time.Now()
		parts, rows := repairAll(t, b, q, false)
		if took := time.Since(began); parts != 2 || len(rows) != latched || took > 15*time.Second {
			t.Errorf("%d rows in %d parts, %v", len(rows), parts, took)
		}
		for section := range sequence.Sections {
			name, want := sequence.RowName("chat", section), int64(1)
			if section < latched {
				want = int64(5001 + section)
			}
			row, err := s.Lookup(t.Context(), name)
			if gone := section == latched-1; gone != errors.Is(err, leaf.ErrUnknownTag) || !gone && row.MaxID != want {
				t.Errorf("row %s: %+v, %v, want %d", name, row, err, want)
			}
			for i, n := range nodes {
				if m := n.Mark(name); m.Latched || m.High > want {
					t.Errorf("node %d has mark %+v of %s", i, m, name)
				}
			}
		}
		if parts, rows := repairAll(t, b, q, false); parts != 1 || len(rows) != 0 {
			t.Errorf("%d rows in %d parts after the repair", len(rows), parts)
		}
	})
}

// TestRepairEveryRow: a row that no node has latched can be behind after a restored backup.
func TestRepairEveryRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, b := latchedSequence(t, 1)
		q := manage.RepairSequence{Name: "chat", Rows: manage.RowsAll, Above: 9000, From: sequence.Sections - 2}
		if _, rows := repairAll(t, b, q, false); len(rows) != 2 {
			t.Errorf("repaired %+v", rows)
		}
		for section, want := range map[int]int64{sequence.Sections - 3: 1, sequence.Sections - 2: 9001, sequence.Sections - 1: 9001} {
			if row, err := s.Lookup(t.Context(), sequence.RowName("chat", section)); err != nil || row.MaxID != want {
				t.Errorf("section %d: %+v, %v, want %d", section, row, err, want)
			}
		}
	})
}

// TestRepairSequenceNeedsEveryNode: a node that is listed and does not answer may have issued the highest number.
func TestRepairSequenceNeedsEveryNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, nodes, b := latchedSequence(t, 2)
		if err := s.Enter(t.Context(), segment.Member{Node: "gone", Process: 1}); err != nil {
			t.Fatal(err)
		}
		q := manage.RepairSequence{Name: "chat", Rows: manage.RowsLatched}
		if _, err := manage.Ask(t.Context(), b, q); !errors.Is(err, segment.ErrSilentNodes) {
			t.Errorf("a node is silent: %v", err)
		}
		first := sequence.RowName("chat", 0)
		if row, err := s.Lookup(t.Context(), first); err != nil || row.MaxID != 1 || !nodes[0].Mark(first).Latched {
			t.Errorf("%+v, %v", row, err)
		}
	})
}

// TestRepairSequenceRefuses what it cannot do.
func TestRepairSequenceRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, b := latchedSequence(t, 1)
		for want, all := range map[error][]manage.RepairSequence{
			leaf.ErrUnknownTag: {{Name: "nope", Rows: manage.RowsAll}, {Name: "nope", Rows: manage.RowsLatched}},
			leaf.ErrBadRequest: {{Name: "chat"}, {Name: "chat", Rows: "some"}, {Rows: manage.RowsAll}, {Name: "chat", Rows: manage.RowsAll, From: -1}, {Name: "chat", Rows: manage.RowsAll, From: sequence.Sections}, {Name: "chat", Rows: manage.RowsLatched, Above: -1}},
		} {
			for _, q := range all {
				if _, err := manage.Ask(t.Context(), b, q); !errors.Is(err, want) {
					t.Errorf("%+v: %v, want %v", q, err, want)
				}
			}
		}
	})
}

// TestCreateSequenceAgain: the database has lost rows of which nodes have issued numbers. They are made again, all nodes
// are asked where their numbers end, and nothing is made below.
func TestCreateSequenceAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, nodes, b := latchedSequence(t, 300) // the other node knows as much
		for section := range 300 {
			s.Remove(sequence.RowName("chat", section))
		}
		repairAll(t, b, manage.RepairSequence{Name: "chat", Rows: manage.RowsLatched}, false)
		q := manage.CreateSequence{Name: "chat", Start: 1, Step: 100}
		if _, err := manage.Ask(t.Context(), b, q); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "use --start 5300 or more") {
			t.Errorf("--start %d: %v", q.Start, err)
		}
		asked := func() int64 {
			all, err := s.Notices(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return segment.NoticeOf(sequence.RowName("chat", 7), all).Asked
		}
		began, before := time.Now(), asked()
		q.Start = 5300
		if got, err := manage.Ask(t.Context(), b, q); err != nil || got.Rows != 300 || time.Since(began) > 20*time.Second {
			t.Fatalf("--start %d: %+v, %v, after %v", q.Start, got, err, time.Since(began))
		}
		if asked() == before {
			t.Error("the nodes were not asked where their numbers end")
		}
		for _, section := range []int{0, 299} {
			name := sequence.RowName("chat", section)
			if row, err := s.Lookup(t.Context(), name); err != nil || row.MaxID != 5300 || nodes[1].Mark(name).High > 5300 {
				t.Errorf("row %+v, %v", row, err)
			}
		}
	})
}

// TestCreateSequenceAfterARestore: a backup from before a sequence was made is loaded under two nodes. Each has issued numbers of
// other rows. The sequence is made again at once, before the nodes have read that the rows are gone, and not below the numbers of
// either.
func TestCreateSequenceAfterARestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		a, b := node(t, s, nil)
		other, _ := node(t, s, nil)
		for section, issues := range map[int]*segment.Allocator{3: a, 7: other} {
			name := sequence.RowName("chat", section)
			s.Put(segment.Row{Tag: name, MaxID: int64(1000 * section), Step: 100}) // in plain order: no node owns slots here
			if _, err := issues.Next(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			s.Remove(name)
		}
		q := manage.CreateSequence{Name: "chat", Start: 1, Step: 100}
		for _, known := range []string{"use --start 3100 or more", "use --start 7100 or more"} {
			if _, err := manage.Ask(t.Context(), b, q); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), known) {
				t.Fatalf("--start %d: %v; want %q", q.Start, err, known)
			}
			q.Start = 3100
		}
		q.Start = 7100
		if got, err := manage.Ask(t.Context(), b, q); err != nil || got.Rows != sequence.Sections {
			t.Errorf("--start %d: %+v, %v", q.Start, got, err)
		}
	})
}

// TestRepairSequenceBelowZero: rows that an administrator has put back with -1, as the alarm says, wait for a repair, and no node
// has a range of one of them, so none has latched it. The command that the alarm names repairs them, too, or says what it needs.
func TestRepairSequenceBelowZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, b := latchedSequence(t, 1)
		back := sequence.RowName("chat", 7)
		s.Put(segment.Row{Tag: back, MaxID: -1, Step: 100, Options: segment.Options{Order: segment.OrderStrict, FixedStep: true}})
		q := manage.RepairSequence{Name: "chat", Rows: manage.RowsLatched}
		if _, err := manage.Ask(t.Context(), b, q); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "(--above)") {
			t.Errorf("a row with -1 of which no node knows: %v", err)
		}
		q.Above = 9000
		repairAll(t, b, q, false)
		if row, err := s.Lookup(t.Context(), back); err != nil || row.MaxID != 9001 {
			t.Errorf("%+v, %v, want 9001", row, err)
		}
	})
}

// rebuiltNode starts an engine whose fence files were made anew with one tag, and returns it and what its alarm of the tag says.
func rebuiltNode(t *testing.T, s *memory.Store, tag string) (*segment.Allocator, leaf.Alarm) {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Replace("fence", []byte("spoilt\n")); err != nil {
		t.Fatal(err)
	}
	if err := fence.Rebuild(dir, dir.NodeID(), map[string]int64{tag: 101}); err != nil {
		t.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := make(firstAlarm, 1)
	a := start(t, router, dir, segment.Config{NodeID: dir.NodeID(), FixedStep: true, LoadTimeout: time.Second, Alarms: said})
	return a, <-said
}

// firstAlarm keeps the first alarm that was raised.
type firstAlarm chan leaf.Alarm

func (f firstAlarm) Raise(a leaf.Alarm) {
	select {
	case f <- a:
	default:
	}
}

func (firstAlarm) Clear(string, string) {}

// TestRepairSequenceAfterARebuiltFence: a node that has lost its fence latches all rows. No other node knows of that, and the
// alarm says: on any one node. So it names the command that repairs every row.
func TestRepairSequenceAfterARebuiltFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		row := sequence.RowName("chat", 0)
		s.Put(segment.Row{Tag: row, MaxID: 101, Step: 100, Options: segment.Options{Order: segment.OrderStrict, FixedStep: true}})
		_, b := node(t, s, nil)
		rebuilt, says := rebuiltNode(t, s, row)
		time.Sleep(10 * time.Second) // both nodes are on the list
		q := manage.RepairSequence{Name: "chat", Rows: manage.RowsLatched}
		if strings.Contains(says.Do, "leaf sequence repair NAME --all") && !strings.Contains(says.Do, "leaf sequence repair NAME, ") {
			q.Rows = manage.RowsAll
		}
		repairAll(t, b, q, false)
		if rebuilt.Mark(row).Latched {
			t.Errorf("the row is latched after what the alarm says was done on the other node: %s", says.Do)
		}
	})
}
