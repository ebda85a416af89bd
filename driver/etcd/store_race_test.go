package etcd_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// before lets f run when the first message with the text is on its way, and holds that up meanwhile.
func before(p *proxy.Proxy, text string, f func()) {
	var once sync.Once
	p.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from == proxy.Client && bytes.Contains(data, []byte(text)) {
			once.Do(f)
		}
		return proxy.Pass
	})
}

// race returns two stores at one place, and the proxy of the first.
func race(t *testing.T) (slow *proxy.Proxy, s, other *etcd.Store) {
	t.Helper()
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	return p.proxies[0], p.store(t), newPlace(t, ns.Servers, ns.Root).store(t)
}

// TestStoreCreateBesideAnotherLife: between the look of a creation and its write another node creates
// the tag, takes a range and deletes the tag. The creation must not begin below that range.
func TestStoreCreateBesideAnotherLife(t *testing.T) {
	slow, s, other := race(t)
	before(slow, `"max_id"`, func() {
		create(t, other, 1)
		_, err := other.Reserve(short(t), order())
		if err := errors.Join(err, other.Delete(short(t), "order")); err != nil {
			t.Error(err)
		}
	})
	err := s.Create(short(t), segment.NewRow{Tag: "order", Start: 1, Step: 7})
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "use --start 8 or more") {
		t.Errorf("Create: %v; want ErrConflict that names 8", err)
	}
}

// TestStoreDeleteBesideALoad: the end that a deletion leaves is that of the last range.
func TestStoreDeleteBesideALoad(t *testing.T) {
	slow, s, other := race(t)
	create(t, s, 1)
	before(slow, `"max_id"`, func() {
		if _, err := other.Reserve(short(t), order()); err != nil {
			t.Error(err)
		}
	})
	if err := s.Delete(short(t), "order"); err != nil {
		t.Fatal(err)
	}
	if answers, err := s.Answers(short(t), "order"); err != nil || len(answers) != 1 || answers[0].High != 8 {
		t.Errorf("answers %+v, %v; want the end 8", answers, err)
	}
}

// TestStoreLimitOfADeletedTag: a limit that is set while its tag is deleted is not kept for the next
// tag of that name.
func TestStoreLimitOfADeletedTag(t *testing.T) {
	slow, s, other := race(t)
	create(t, s, 1)
	before(slow, `"rate"`, func() {
		if err := other.Delete(short(t), "order"); err != nil {
			t.Error(err)
		}
	})
	if r, err := s.SetTagLimit(short(t), "order", limit.ChangeTo(limit.Rule{Rate: 5})); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("SetTagLimit beside a deletion = %+v, %v; want ErrUnknownTag", r, err)
	}
	if rules, err := s.Limits(short(t)); err != nil || len(rules.Tags) != 0 {
		t.Errorf("limits %+v, %v", rules, err)
	}
}

// TestStoreRefusesByWhatIs: a node that wrote the row last believes that it is used up. Another node
// has returned unused IDs since.
func TestStoreRefusesByWhatIs(t *testing.T) {
	_, s, other := race(t)
	create(t, s, segment.MaxMaxID-7)
	if _, err := s.Reserve(short(t), order()); err != nil {
		t.Fatal(err)
	}
	if err := other.ReturnUnused(short(t), "order", segment.MaxMaxID, segment.MaxMaxID-7); err != nil {
		t.Fatal(err)
	}
	res, err := s.Reserve(short(t), order())
	if want := (leaf.Range{Lo: segment.MaxMaxID - 7, Hi: segment.MaxMaxID}); err != nil || res.Range != want {
		t.Errorf("Reserve = %v, %v; want %v", res, err, want)
	}
}
