package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/worker"
)

// TestRegistriesOfAnotherCluster is rule V: the keys become those of another cluster. The node hears of no owner and of no
// worker ID there, and makes no namespace.
func TestRegistriesOfAnotherCluster(t *testing.T) {
	p, s := bound(t)
	slots, err := s.Slots()
	if err != nil {
		t.Fatal(err)
	}
	defer slots.Close()
	beside := p.config()
	beside.Prefix += "/worker"
	workers, err := etcd.NewRecords(beside)
	if err != nil {
		t.Fatal(err)
	}
	defer workers.Close()
	workers.BelongTo(s)
	for name, r := range map[string]*etcd.Records{"worker IDs": workers, "slots": slots} {
		if all, err := r.List(short(t)); err != nil || len(all) > 0 {
			t.Fatalf("List of the %s: %v, %v", name, all, err)
		}
	}
	p.put(t, p.prefix+"/owner", strings.Replace(p.value(t, "/owner"), s.KnownCluster(), "theirs", 1))
	before := len(p.keys(t, false))
	for name, r := range map[string]*etcd.Records{"worker IDs": workers, "slots": slots} {
		_, read := r.Namespace(short(t), nil)
		_, made := r.Namespace(short(t), &worker.StoredNamespace{Namespace: space})
		_, list := r.List(short(t))
		for call, err := range map[string]error{"Namespace": read, "Namespace that is made": made, "List": list} {
			if !isOtherCluster(err) || errors.Is(err, worker.ErrLost) {
				t.Errorf("%s of the %s: %v; want a ClusterError alone", call, name, err)
			}
		}
	}
	if keys := p.keys(t, false); len(keys) != before {
		t.Errorf("keys %q; want no new one", keys)
	}
}
