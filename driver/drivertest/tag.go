package drivertest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var tagCases = []testCase{
	{"every strange name is a tag of its own", strangeNames},
	{"a name that differs in one byte is another tag", twins},
}

// names are valid tags that something between us and the disk could mistake.
var names = []string{
	"leaf-segment-test", "order.pay", "order/pay", "Ä", "a", "0", "-1", "NULL", "true", "?", "??", "$1", ":a", "@a", "*", "order*",
	`'`, `''`, `"`, "`", `\`, `\\`, `\'`, `'; DROP TABLE leaf_alloc; --`, "%", "_", "%s", "%27", "a%b_c", "--", "/*", "#", ";", "(", "{}", "[",
	" ", "  x", "x y", "\t", "a\tb", "\n", "a\nb", "\r\n", "\x01", "\x1a", "\x7f", "\u00a0", "\u200b", "\ufeffbom", "\u2028",
	"订单", "注文", "주문", "заказ", "طلب", "é", "e\u0301", "ﬁ", "fi", "ß", "ss", "İ", "ı", "K", "\u212a", "Å", "Å",
	"😀", "👨‍👩‍👧", "𝒳", "\U0010ffff", "\ufffd",
	strings.Repeat("x", leaf.MaxTagLen), strings.Repeat("é", leaf.MaxTagLen), strings.Repeat("单", leaf.MaxTagLen), strings.Repeat("😀", leaf.MaxTagLen),
}

// fits returns the names that the database can hold beside one another.
func fits(b Backend) (kept []string) {
	for _, name := range names {
		if b.Holds != nil && !b.Holds(name) {
			continue
		}
		if slices.Contains(kept, name) || b.Same != nil && b.Same(name, kept...) {
			continue
		}
		kept = append(kept, name)
	}
	return kept
}

func strangeNames(t *testing.T, b Backend) {
	kept := fits(b)
	if len(kept) < len(names)/2 {
		t.Fatalf("only %d of %d names are left", len(kept), len(names))
	}
	for i, name := range kept {
		if err := b.Store.Create(ctx(t), segment.NewRow{Tag: name, Start: int64(i * 100), Step: 7}); err != nil {
			t.Errorf("Create(%q): %v", name, err)
		}
	}
	for i, name := range kept {
		lo := int64(i * 100)
		for _, believed := range []int64{0, 7} {
			res, err := b.Store.Reserve(ctx(t), request(name, believed, 7))
			if want := (leaf.Range{Lo: lo, Hi: lo + 7}); err != nil || res.Range != want {
				t.Errorf("Reserve(%q) = %v, %v; want %v", name, res, err, want)
			}
			lo += 7
		}
		if err := b.Store.ReturnUnused(ctx(t), name, lo, lo-3); err != nil {
			t.Errorf("ReturnUnused(%q): %v", name, err)
		}
		if got, err := b.Store.Raise(ctx(t), name, lo+1); err != nil || got != lo+1 {
			t.Errorf("Raise(%q) = %d, %v", name, got, err)
		}
		if err := b.Store.Update(ctx(t), name, segment.Change{Step: new(int64(i + 1))}); err != nil {
			t.Errorf("Update(%q): %v", name, err)
		}
	}
	rows, err := b.Store.Rows(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]segment.Row)
	for _, row := range rows {
		found[row.Tag] = row
	}
	for i, name := range kept {
		if row := found[name]; row.Tag != name || row.MaxID != int64(i*100+15) || row.Step != int64(i+1) {
			t.Errorf("Rows has %+v for %q", row, name)
		}
		if row, err := b.Store.Lookup(ctx(t), name); err != nil || row.Tag != name {
			t.Errorf("Lookup(%q) = %v, %v", name, row, err)
		}
		b.drop(t, name)
	}
	if rows, err := b.Store.Rows(ctx(t)); err != nil || len(rows) != 0 {
		t.Errorf("after deleting all: %v, %v", rows, err)
	}
}

// drop deletes a row in any database.
func (b Backend) drop(t *testing.T, tag string) {
	t.Helper()
	if b.NoMeta {
		b.Remove(t, tag)
	} else if err := b.Store.Delete(ctx(t), tag); err != nil {
		t.Errorf("Delete(%q): %v", tag, err)
	}
}

// twinPairs are pairs that some collation takes for equal.
var twinPairs = [][2]string{
	{"Order", "order"},
	{"order", "order "},
	{"order", " order"},
	{"order", "order\t"},
	{"order", "ordér"},
	{"straße", "strasse"},
	{"é", "e\u0301"},
	{"ﬁ", "fi"},
	{"a", "Å"},
	{"ı", "i"},
	{"order", "order\u200b"},
	{"😀", "😃"},
	{"order", "order😀"},
	{"订单", "订单 "},
	{"%", "_"},
	{"a_c", "abc"},
}

func twins(t *testing.T, b Backend) {
	for _, pair := range twinPairs {
		for _, p := range [][2]string{pair, {pair[1], pair[0]}} {
			twin(t, b, p[0], p[1])
		}
	}
}

// twin stores one tag and asks for the other.
func twin(t *testing.T, b Backend, stored, asked string) {
	if b.Holds != nil && !b.Holds(stored) {
		return
	}
	if err := b.Store.Create(ctx(t), segment.NewRow{Tag: stored, Start: 100, Step: 7}); err != nil {
		t.Errorf("Create(%q): %v", stored, err)
		return
	}
	defer b.drop(t, stored)
	for name, call := range map[string]func() error{
		"Reserve": func() error { _, err := b.Store.Reserve(ctx(t), request(asked, 7, 7)); return err },
		"Reserve with step unknown": func() error {
			_, err := b.Store.Reserve(ctx(t), request(asked, 0, 0))
			return err
		},
		"ReturnUnused": func() error { return b.Store.ReturnUnused(ctx(t), asked, 100, 50) },
		"Raise":        func() error { _, err := b.Store.Raise(ctx(t), asked, 500); return err },
		"Lookup":       func() error { _, err := b.Store.Lookup(ctx(t), asked); return err },
		"Update":       func() error { return b.Store.Update(ctx(t), asked, segment.Change{Step: new(int64(1))}) },
		"Delete":       func() error { return b.Store.Delete(ctx(t), asked) },
	} {
		if err := call(); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("%s of %q beside %q: %v; want ErrUnknownTag", name, asked, stored, err)
		}
	}
	if row, err := b.Store.Lookup(ctx(t), stored); err != nil || row.MaxID != 100 || row.Step != 7 {
		t.Errorf("%q was written through %q: %v, %v", stored, asked, row, err)
	}
	err := b.Store.Create(ctx(t), segment.NewRow{Tag: asked, Start: 100, Step: 7})
	switch {
	case b.Holds != nil && !b.Holds(asked):
		if !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Create(%q), which the column cannot hold: %v; want ErrBadRequest", asked, err)
		}
	case b.Same != nil && b.Same(asked, stored):
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), strconv.Quote(stored)) {
			t.Errorf("Create(%q) beside %q: %v; want ErrConflict that names the latter", asked, stored, err)
		}
	case err != nil:
		t.Errorf("Create(%q) beside %q: %v", asked, stored, err)
	default:
		b.drop(t, asked)
	}
}
