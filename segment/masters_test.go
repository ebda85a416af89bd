package segment_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

func masters(k int, block int64) *segment.Masters {
	return &segment.Masters{Block: block, Stores: make([]int, k)}
}

// TestMastersMeetNever: small divisions are counted out. Every ID belongs to exactly one number of one part, and
// grows with the numbers of its part.
func TestMastersMeetNever(t *testing.T) {
	const blocks = 5
	for k := 2; k <= 5; k++ {
		for block := int64(1); block <= 4; block++ {
			m, seen := masters(k, block), map[int64]string{}
			for i := range k {
				before := int64(-1)
				for n := range blocks * block {
					id, err := m.ID(i, n)
					if err != nil {
						t.Fatal(err)
					}
					me := fmt.Sprintf("number %d of part %d", n, i)
					if other, ok := seen[id]; ok {
						t.Errorf("%d parts, blocks of %d: %s and %s are ID %d", k, block, other, me, id)
					}
					if seen[id] = me; id <= before {
						t.Errorf("%d parts, blocks of %d: %s is ID %d, and the number before it %d", k, block, me, id, before)
					}
					if at, number := m.Of(id); at != i || number != n {
						t.Errorf("%d parts, blocks of %d: ID %d is number %d of part %d, want %s", k, block, id, number, at, me)
					}
					before = id
				}
			}
			for id := range int64(k) * blocks * block {
				if seen[id] == "" {
					t.Errorf("%d parts, blocks of %d: no number stands for ID %d", k, block, id)
				}
			}
		}
	}
}

// TestMastersAppendIDs: the IDs of a range are those of its numbers, in as few ranges as there are blocks.
func TestMastersAppendIDs(t *testing.T) {
	m := masters(3, 10)
	for lo := range int64(40) {
		for hi := lo; hi < 60; hi++ {
			var want []leaf.Range
			for n := lo; n < hi; n++ {
				id, err := m.ID(1, n)
				if err != nil {
					t.Fatal(err)
				}
				want = leaf.AppendRange(want, leaf.Range{Lo: id, Hi: id + 1})
			}
			got, err := m.AppendIDs(nil, 1, leaf.Range{Lo: lo, Hi: hi})
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("[%d, %d) is %v, %v; want %v", lo, hi, got, err, want)
			}
		}
	}
}

// TestMastersOverflow: the last number of each part has an ID below MaxMaxID, and the next one none.
func TestMastersOverflow(t *testing.T) {
	for _, block := range []int64{segment.MinBlock, 4096, 999_983, segment.MaxBlock} {
		for _, k := range []int{2, 3, segment.MaxMasters} {
			m := masters(k, block)
			for i := range k {
				lo, hi := int64(0), int64(segment.MaxMaxID)
				for lo+1 < hi { // the last number with an ID
					if mid := lo + (hi-lo)/2; errOf(m.ID(i, mid)) == nil {
						lo = mid
					} else {
						hi = mid
					}
				}
				id, err := m.ID(i, lo)
				if err != nil || id <= segment.MaxMaxID-int64(k+1)*block || id >= segment.MaxMaxID {
					t.Errorf("%d parts, blocks of %d: the last number of part %d is %d, its ID %d, %v", k, block, i, lo, id, err)
				}
				for _, n := range []int64{hi, segment.MaxMaxID, 1<<63 - 1, -1} {
					if id, err := m.ID(i, n); !errors.Is(err, leaf.ErrOverflow) {
						t.Errorf("%d parts, blocks of %d: number %d of part %d is ID %d, %v; want ErrOverflow", k, block, n, i, id, err)
					}
				}
				if got, err := m.AppendIDs(nil, i, leaf.Range{Lo: lo, Hi: hi + 1}); !errors.Is(err, leaf.ErrOverflow) || len(got) > 0 {
					t.Errorf("a range past the last number is %v, %v; want ErrOverflow", got, err)
				}
				if got := m.End(i, hi); got != id+1 {
					t.Errorf("the row of part %d is used up, and its IDs end at %d, want %d", i, got, id+1)
				}
				if got := m.End(i, 1<<63-1); got != segment.MaxMaxID {
					t.Errorf("the IDs of a row outside its limits end at %d", got)
				}
				if n, err := m.Start(i, segment.MaxMaxID); !errors.Is(err, leaf.ErrOverflow) {
					t.Errorf("part %d starts at %d, %v; want ErrOverflow", i, n, err)
				}
			}
		}
	}
}

func errOf(_ int64, err error) error { return err }

// TestMastersAfterAnotherDivision: parts of a new division that start above the end of all parts of the old one repeat
// no ID of it, whatever the two divisions are. That 2 databases become 4 is one case.
func TestMastersAfterAnotherDivision(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 44))
	for range 2000 {
		k := 1 + random.IntN(4) // 1: a row that was not divided
		was, will := masters(k, 1+random.Int64N(5)), masters(2+random.IntN(4), 1+random.Int64N(5))
		if random.IntN(2) == 0 && k > 1 {
			will = masters(2*k, was.Block)
		}
		used, end := map[int64]bool{}, int64(0)
		for i := range k {
			maxID := random.Int64N(30)
			for n := range maxID {
				id, err := was.ID(i, n)
				if err != nil {
					t.Fatal(err)
				}
				used[id] = true
			}
			end = max(end, was.End(i, maxID))
		}
		for i := range will.Stores {
			start, err := will.Start(i, end)
			if err != nil {
				t.Fatal(err)
			}
			for n := start; n < start+40; n++ {
				if id, err := will.ID(i, n); err != nil || used[id] {
					t.Fatalf("%d parts in blocks of %d become %d in blocks of %d: number %d of part %d is ID %d, which was issued before; %v",
						k, was.Block, len(will.Stores), will.Block, n, i, id, err)
				}
			}
			if start > 0 {
				if id, _ := will.ID(i, start-1); id >= end {
					t.Fatalf("part %d starts at number %d, and the number before has ID %d, which is not below %d either", i, start, id, end)
				}
			}
		}
	}
}

func TestPartNames(t *testing.T) {
	m := masters(12, 1000)
	for i := range m.Stores {
		for _, tag := range []string{"orders", "a~b", "订单", "x~1of2~1000"} {
			got, of, at, ok := segment.ParsePart(m.Part(tag, i))
			if !ok || got != tag || at != i || of.Block != 1000 || len(of.Stores) != 12 {
				t.Errorf("%q is part %d of %q, %+v, %v", m.Part(tag, i), at, got, of, ok)
			}
		}
	}
	for _, name := range []string{
		"", "orders", "~1of2~1000", "orders~1of2", "orders~0of2~1000", "orders~3of2~1000", "orders~1of1~1000", "orders~1of17~1000",
		"orders~01of2~1000", "orders~1of2~01000", "orders~+1of2~1000", "orders~1of2~0", "orders~1of2~1073741825", "orders~1of2~1000 ", "orders~1of~1000",
	} {
		if tag, _, _, ok := segment.ParsePart(name); ok {
			t.Errorf("%q is a part of %q", name, tag)
		}
	}
	long := strings.Repeat("ä", leaf.MaxTagLen)
	if _, err := m.Parts(long); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "at most 116 characters") {
		t.Errorf("Parts of a long name: %v", err)
	}
	if all, err := m.Parts(string([]rune(long)[:116])); err != nil || len(all) != 12 {
		t.Errorf("Parts of a name of 116 characters: %v, %v", all, err)
	}
	if _, err := m.Parts(""); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("Parts of no name: %v", err)
	}
}

// TestRouteOfMasters: each part goes to its own database, the tag itself to none, and other tags as without the rule.
func TestRouteOfMasters(t *testing.T) {
	stores := []segment.NamedStore{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	plain, err := segment.NewRouter(stores, rules(t, "pay*=a"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := segment.NewRouter(stores, rules(t, "pay*=a", "order*=c,a*1000"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"order": -1, "order~1of2~1000": 2, "order~2of2~1000": 0, "order~3of2~1000": -1, // no part: a tag in both
		"order~1of2~2000": -1, "order~1of2~1000~2of2~1000": -1, // as above
		"order~1of2~2000~2of2~1000": 0, "pay": 0, "pay~1of2~1000": 0,
	} {
		if got := r.Route(name); got != want {
			t.Errorf("%q goes to %d, want %d", name, got, want)
		}
		m := r.Masters(name)
		if (m != nil) != (want < 0) || m != nil && (m.Block != 1000 || !slices.Equal(m.Stores, []int{2, 0})) {
			t.Errorf("%q has the databases %+v", name, m)
		}
	}
	if got := r.TagOfPart("order.x~2of2~1000"); got != "order.x" {
		t.Errorf("a part belongs to %q, want order.x", got)
	}
	if got := r.TagOfPart("order") + r.TagOfPart("pay~1of2~1000"); got != "" {
		t.Errorf("tags that are no parts belong to %q", got)
	}
	for i := range 100 {
		if tag := fmt.Sprint("user-", i); r.Route(tag) != plain.Route(tag) || r.Masters(tag) != nil {
			t.Errorf("%q goes to %d, want %d as without the rule", tag, r.Route(tag), plain.Route(tag))
		}
	}
}

// TestMastersAreInTheFingerprint: a node with another block size, or with the databases in another order, has another
// tag rule. So a database that disagrees refuses it (rule K).
func TestMastersAreInTheFingerprint(t *testing.T) {
	stores := []segment.NamedStore{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	seen := map[string]string{}
	for _, rule := range []string{"o=a", "o=a,b*1000", "o=b,a*1000", "o=a,b*2000", "o=a,b,c*1000", "o*=a,b*1000"} {
		r, err := segment.NewRouter(stores, rules(t, rule))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[r.Fingerprint()]; ok {
			t.Errorf("%s and %s have one fingerprint", other, rule)
		}
		seen[r.Fingerprint()] = rule
	}
}

func TestMastersRuleRefuses(t *testing.T) {
	for _, text := range []string{
		"o=a,b", "o=a*1000", "o=a,a*1000", "o=a,*1000", "o=a,b*999", "o=a,b*1073741825", "o=a,b*", "o=a,b*1e3", "o=a,b*01000", "o=a,b*+1000",
		"o=" + strings.Join(strings.Split("abcdefghijklmnopq", ""), ",") + "*1000",
	} {
		if r, err := segment.ParseTagRule(text); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s is %+v, %v; want ErrBadRequest", text, r, err)
		}
	}
	if _, err := segment.NewRouter([]segment.NamedStore{{Name: "a"}, {Name: "b"}}, rules(t, "o=a,c*1000")); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("a rule with an unknown database: %v", err)
	}
}
