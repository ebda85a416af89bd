package etcd_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// value returns the text of a key.
func (p *place) value(t *testing.T, key string) string {
	t.Helper()
	r, err := p.raw.Get(short(t), p.prefix+key)
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("key %q: %+v, %v", key, r, err)
	}
	return string(r.Kvs[0].Value)
}

// TestStoreUnreadableRow: a row that this version does not understand gives no range, is not changed,
// and hides no other row.
func TestStoreUnreadableRow(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s := p.store(t)
	create(t, s, 1)
	good := p.value(t, "/rows/order")
	for _, text := range []string{
		"", "x", "null", "7", "{}", good + good,
		strings.Replace(good, "{", `{"format":1,`, 1),
		strings.Replace(good, `"max_id":"1"`, `"max_id":1`, 1),
		strings.Replace(good, `"max_id":"1"`, `"max_id":"99999999999999999999"`, 1),
		strings.Replace(good, `"max_id":"1"`, `"max_id":null`, 1),
		strings.Replace(good, `"max_id":"1",`, "", 1),
		strings.Replace(good, `"step":7,`, "", 1),
	} {
		if text == good {
			t.Fatalf("the row is %s", good)
		}
		p.put(t, p.prefix+"/rows/odd", text)
		res, err := s.Reserve(short(t), segment.Request{Tag: "odd", Min: 1, Max: 7})
		for call, err := range map[string]error{
			"Reserve": err, "ReturnUnused": s.ReturnUnused(short(t), "odd", 1, 0),
			"Update": s.Update(short(t), "odd", segment.Change{Step: new(int64(9))}), "Delete": s.Delete(short(t), "odd"),
		} {
			if !errors.Is(err, leaf.ErrInvalidRow) || !strings.Contains(err.Error(), p.prefix+"/rows/odd") {
				t.Errorf("%s of %q: %v; want ErrInvalidRow that names the key", call, text, err)
			}
		}
		if res != (segment.Reservation{}) || p.value(t, "/rows/odd") != text {
			t.Errorf("Reserve of %q = %v, and the row is %q", text, res, p.value(t, "/rows/odd"))
		}
		rows, err := s.Rows(short(t))
		if err != nil || len(rows) != 2 || rows[0].Tag != "odd" || rows[0].Problem == nil || rows[1].Problem != nil {
			t.Errorf("Rows beside %q = %+v, %v", text, rows, err)
		}
	}
}

// TestStoreKeepsUnknownFields: a later version of Leaf has written fields that this one does not know.
func TestStoreKeepsUnknownFields(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s := p.store(t)
	if err := s.Create(short(t), segment.NewRow{Tag: "order", Start: 1, Step: 7, Options: segment.Options{MaxStep: 9, FixedStep: true, Order: segment.OrderStrict}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetTagLimit(short(t), "order", limit.ChangeTo(limit.Rule{Rate: 5})); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/rows/order", "/limits/tags/order"} {
		p.put(t, p.prefix+key, strings.ReplaceAll(p.value(t, key), "{", `{"later":{"a":[1,"<"]},`)) // also into the options of the row
	}
	if _, err := s.Reserve(short(t), order()); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Lookup(short(t), "order"); err != nil || row.Options != (segment.Options{MaxStep: 9, FixedStep: true, Order: segment.OrderStrict}) {
		t.Errorf("options after Reserve: %+v, %v", row, err)
	}
	if err := s.Update(short(t), "order", segment.Change{MaxStep: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetTagLimit(short(t), "order", limit.Change{Blocked: new(true)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, want string
		later     int
	}{{"/rows/order", `"fixed_step":true`, 2}, {"/limits/tags/order", `"rate":5`, 1}} {
		text := p.value(t, c.key)
		if !strings.Contains(text, c.want) || strings.Contains(text, "max_step") || strings.Count(text, `"later":{"a":[1,`) != c.later {
			t.Errorf("%s is %s; want %s, %d fields of a later version, and no max_step", c.key, text, c.want, c.later)
		}
	}
}

// TestStoreKeys: what is kept is on no lease, but for nodes and for answers that know nothing. A slash
// in a tag does not mix its answers with those about another tag.
func TestStoreKeys(t *testing.T) {
	p := newPlace(t, server.OwnEtcd(t, 1).Servers(), "/leaf/segment/x") // whose leases are ours
	s := p.store(t)
	create(t, s, 1)
	for _, err := range []error{
		s.Bind(short(t), segment.Binding{Store: "default"}),
		s.Enter(short(t), segment.Member{Node: "n"}), s.Enter(short(t), segment.Member{Node: "n"}),
		s.Post(short(t), segment.Notice{Tag: "a/b", Asked: 1}),
		s.Answer(short(t), segment.Answer{Tag: "a/b", Node: "n", Asked: 1}),
		s.Answer(short(t), segment.Answer{Tag: "a/b", Node: "m", Asked: 1}),
		s.Answer(short(t), segment.Answer{Tag: "a/b", Node: "m", Asked: 2, High: 5}),
		s.Answer(short(t), segment.Answer{Tag: "a", Node: "b/n", High: 7}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if leased := p.keys(t, true); !slices.Equal(leased, []string{"/answers/a%2Fb/n", "/nodes/n"}) {
		t.Errorf("keys on a lease: %q", leased)
	}
	if kept := p.keys(t, false); !slices.Equal(kept, []string{"/answers/a%2Fb/m", "/answers/a/b/n", "/notices/a/b", "/owner", "/rows/order"}) {
		t.Errorf("keys on none: %q", kept)
	}
	if answers, err := s.Answers(short(t), "a/b"); err != nil || len(answers) != 2 {
		t.Errorf("answers about a/b: %+v, %v", answers, err)
	}
	leases, err := p.raw.Leases(short(t))
	if err != nil || len(leases.Leases) != 3 {
		t.Errorf("%d leases, %v; want 3: one for the node, and one for each answer that knew nothing", len(leases.Leases), err)
	}
}

// TestStoreForgetsManyAnswers: more nodes have answered than one transaction can write.
func TestStoreForgetsManyAnswers(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s := p.store(t)
	if err := s.Post(short(t), segment.Notice{Tag: "order", Asked: 7}); err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		p.put(t, fmt.Sprintf("%s/answers/order/n%d", p.prefix, i), fmt.Sprintf(`{"tag":"order","node":"n%d","asked":"7","high":"0","latched":false}`, i))
	}
	if err := s.Forget(short(t), "order", 7); err != nil {
		t.Fatal(err)
	}
	asked, err := s.Forgotten(short(t))
	answers, errAnswers := s.Answers(short(t), "order")
	if notices, errNotices := s.Notices(short(t)); errors.Join(err, errAnswers, errNotices) != nil || asked != 7 || len(notices) != 0 || len(answers) > 60 {
		t.Errorf("forgotten %d, notices %v, %d answers; %v", asked, notices, len(answers), errors.Join(err, errAnswers, errNotices))
	}
}

// TestStoreUnreadableBoard: what cannot be read is not overlooked, because it may tell of numbers.
func TestStoreUnreadableBoard(t *testing.T) {
	ns := server.Etcd(t)
	for i, key := range []string{"/notices/order", "/answers/order/n", "/answers/order/" + segment.DeletedRow} {
		for _, text := range []string{"", "x", `{"format":1}`} {
			p := newPlace(t, ns.Servers, fmt.Sprintf("%s/%d%d", ns.Root, i, len(text)))
			s := p.store(t)
			p.put(t, p.prefix+key, text)
			if err := s.Create(short(t), segment.NewRow{Tag: "order", Start: 1, Step: 7}); err == nil || !strings.Contains(err.Error(), p.prefix+key) {
				t.Errorf("Create beside %s=%q: %v; want an error that names the key", key, text, err)
			}
		}
	}
}
