package drivertest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/segment"
)

var auditCases = []testCase{
	{"entries are kept", auditKept},
	{"entries by page and filter", auditPages},
	{"old entries go", auditForgets},
	{"a clock that is ahead deletes no entries", auditAhead},
	{"entries refuse bad values", auditBad},
	{"entries need their table", auditMissing},
}

const keepEntries = time.Hour

// firstEntry is when the first change was made: none of a right clock lies ahead.
var firstEntry = time.Now().Add(-24 * time.Hour).Truncate(time.Microsecond).UTC()

// entry is a change that was made some time after the first one.
func entry(after time.Duration, who, object string) audit.Entry {
	at := firstEntry.Add(after)
	return audit.Entry{ID: audit.NewID(at), Time: at, Node: "n1", Who: who, Address: "[::1]:7", Operation: "tag set", Object: object, From: `{"step":1}`, To: `{"step":2}`, Result: audit.Done}
}

func record(t *testing.T, s Store, e audit.Entry) audit.Entry {
	t.Helper()
	if err := s.Record(ctx(t), e, keepEntries); err != nil {
		t.Fatalf("Record: %v", err)
	}
	return e
}

// wantEntries reads all that q asks for, by pages of its Limit, from a store and from another
// one on the same database.
func wantEntries(t *testing.T, b Backend, q audit.Query, want ...audit.Entry) {
	t.Helper()
	stores := []Store{b.Store}
	if b.Other != nil {
		stores = append(stores, b.Other(t))
	}
	for _, s := range stores {
		var got []audit.Entry
		for q, pages := q, 0; ; pages++ {
			page, next, err := s.Entries(ctx(t), q)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, page...); len(page) > q.Limit || pages > len(want)+2 {
				t.Fatalf("a page of %d has %d entries, %d pages so far", q.Limit, len(page), pages)
			}
			if q.Before = next; next == "" {
				break
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("Entries(%+v) (-want +got):\n%s", q, diff)
		}
	}
}

func auditKept(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no audit log")
	}
	q := audit.Query{Limit: 10}
	wantEntries(t, b, q)
	first := record(t, b.Store, entry(0, "token ci", "tag a"))
	long := entry(time.Microsecond, strings.Repeat("说", audit.MaxName+1), strings.Repeat("😀", audit.MaxName))
	long.To, long.From, long.Result = strings.Repeat("😀", audit.MaxValue), "", "x\x00y\n'\"`\\%"
	long.Operation = strings.Repeat("中", audit.MaxWords)
	long = record(t, b.Store, long.Fit())
	wantEntries(t, b, q, long, first)
	record(t, b.Store, first) // as after a lost answer
	wantEntries(t, b, q, long, first)
}

func auditPages(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no audit log")
	}
	var all []audit.Entry // the newest first
	for i := range 7 {
		who, object := "token "+strconv.Itoa(i%2), []string{"tag a", "tag A", "tag a "}[i%3]
		all = append([]audit.Entry{record(t, b.Store, entry(time.Duration(i)*time.Second, who, object))}, all...)
	}
	for _, limit := range []int{1, 2, 7, 8, audit.MaxPage} {
		wantEntries(t, b, audit.Query{Limit: limit}, all...)
	}
	wantEntries(t, b, audit.Query{Limit: 2, Object: "tag a"}, all[0], all[3], all[6])
	wantEntries(t, b, audit.Query{Limit: 1, Who: "token 1"}, all[1], all[3], all[5])
	wantEntries(t, b, audit.Query{Limit: 1, Who: "token 1", Object: "tag A"}, all[5])
	wantEntries(t, b, audit.Query{Limit: 3, Since: all[2].Time}, all[:3]...)
	wantEntries(t, b, audit.Query{Limit: 3, Since: all[2].Time.Add(time.Microsecond)}, all[:2]...)
	wantEntries(t, b, audit.Query{Limit: 3, Before: all[4].ID}, all[5:]...)
	wantEntries(t, b, audit.Query{Limit: 3, Who: "nobody"})
}

func auditForgets(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no audit log")
	}
	record(t, b.Store, entry(0, "old", "tag a"))
	kept := record(t, b.Store, entry(time.Second, "kept", "tag a"))
	last := record(t, b.Store, entry(time.Second+keepEntries, "last", "tag a"))
	wantEntries(t, b, audit.Query{Limit: 10}, last, kept)
}

// auditAhead: a node with a wrong clock makes no entry old.
func auditAhead(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no audit log")
	}
	record(t, b.Store, entry(0, "old", "tag a"))
	kept := record(t, b.Store, entry(24*time.Hour-keepEntries/2, "kept", "tag a"))
	ahead := record(t, b.Store, entry(10_000*time.Hour, "a wrong clock", "tag a"))
	wantEntries(t, b, audit.Query{Limit: 10}, ahead, kept)
}

func auditBad(t *testing.T, b Backend) {
	good := entry(0, "a", "tag a")
	edit := func(f func(*audit.Entry)) audit.Entry {
		e := good
		f(&e)
		return e
	}
	for name, e := range map[string]audit.Entry{
		"no ID":         edit(func(e *audit.Entry) { e.ID = "" }),
		"a wrong ID":    edit(func(e *audit.Entry) { e.ID = strings.Repeat("z", len(e.ID)) }),
		"a long name":   edit(func(e *audit.Entry) { e.Who = strings.Repeat("x", audit.MaxName+1) }),
		"a long value":  edit(func(e *audit.Entry) { e.To = strings.Repeat("x", audit.MaxValue+1) }),
		"no UTF-8":      edit(func(e *audit.Entry) { e.Object = "\xff" }),
		"a zero byte":   edit(func(e *audit.Entry) { e.Result = "\x00" }),
		"a broken line": edit(func(e *audit.Entry) { e.Address = "a\nb" }),
	} {
		if err := b.Store.Record(ctx(t), e, keepEntries); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: Record: %v; want ErrBadRequest", name, err)
		}
	}
	for _, q := range []audit.Query{{}, {Limit: -1}, {Limit: audit.MaxPage + 1}, {Limit: 1, Before: "x"}} {
		if _, _, err := b.Store.Entries(ctx(t), q); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Entries(%+v): %v; want ErrBadRequest", q, err)
		}
	}
}

func auditMissing(t *testing.T, b Backend) {
	if !b.NoMeta {
		t.Skip("this database has an audit log")
	}
	err := b.Store.Record(ctx(t), entry(0, "a", "tag a"), keepEntries)
	_, _, readErr := b.Store.Entries(ctx(t), audit.Query{Limit: 1})
	for call, err := range map[string]error{"Record": err, "Entries": readErr} {
		if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf_audit") || !strings.Contains(err.Error(), "leaf schema apply") {
			t.Errorf("%s: %v; want ErrSchema that names the table and the command", call, err)
		}
	}
}
