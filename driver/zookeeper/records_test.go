package zookeeper_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment/fence"
	"github.com/leaf-idgen/leaf/worker"
)

// TestClaimWithoutT: a T that is missing is not 0. Nobody takes a number whose last
// owner may have issued up to it.
func TestClaimWithoutT(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", `{"format":1}`, `{"format":1,"bound":null}`, `{"format":1,"bound":-1}`} {
		p := newPlace(t, server.ZooKeeper(t))
		r := p.recycle(t)
		declare(t, r)
		own, err := r.Claim(ctx(t), request(addr))
		if err != nil {
			t.Fatal(err)
		}
		path := p.root() + "/leaf_pool/bounds/" + strconv.FormatInt(own.Number, 10)
		if data == "" {
			p.remove(t, path)
		} else {
			p.set(t, path, data)
		}
		other := p.recycle(t)
		if got, err := other.Claim(ctx(t), request("10.0.0.9:8080")); err != nil || got.Number == own.Number {
			t.Errorf("T %q: Claim = %+v, %v; want another number", data, got, err)
		}
		all, err := other.List(ctx(t))
		i := slices.IndexFunc(all, func(r worker.Record) bool { return r.Number == own.Number })
		if err != nil || i < 0 || !strings.Contains(all[i].Damage, path) {
			t.Errorf("T %q: List = %+v, %v; want a damage with the path", data, all, err)
		}
	}
}

// TestEntryWithoutEnd: an end that is missing is not 0 either.
func TestEntryWithoutEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	f := p.fence(t)
	space, _, err := f.Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Swap(ctx(t), space, "order", nil, 5); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{`{"format":1}`, `{"format":1,"end":-1}`, `{"format":1,"end":9223372036854775807}`} {
		p.set(t, p.cfg.Chroot+"/leaf/fence/test/"+space+"/order", data)
		if e, ok, err := f.Read(ctx(t), space, "order"); err == nil {
			t.Errorf("%s is read as %+v, %v", data, e, ok)
		}
	}
}

// FuzzRecords: what is read of our own nodes, written again, says the same; what is
// not one of them is refused with its path.
func FuzzRecords(f *testing.F) {
	for i, data := range []string{
		`{"format":1,"nonce":"n","claimed":true,"node":"a:1-0000000007","node_version":3,"node_czxid":9,"number":7,"floor":1,"bound":2,"released":false}`,
		`{"format":1,"name":"prod","fingerprint":"f","issue_from":5,"incarnation":"x","forever":9}`,
		`{"format":1,"announced":true,"address":"10.0.0.1:8080","clock":"10.0.0.1:80","nonce":"n","number":7}`,
		`{"format":1,"address":"a:1","nonce":"n","floor":0,"released":false}`,
		`{"format":1,"incarnation":"x"}`,
	} {
		f.Add(uint8(i), []byte(data))
		f.Add(uint8(i), []byte(strings.Replace(data, `"format":1`, `"format":2`, 1)))
		f.Add(uint8(i), []byte(strings.Replace(data, "{", `{"more":1,`, 1)))
		f.Add(uint8(i), []byte(data+data))
	}
	f.Add(uint8(0), []byte("null"))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		name := zookeeper.Records[int(kind)%len(zookeeper.Records)]
		once, err := zookeeper.Rewrite(name, "/path", data)
		if err != nil {
			if !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "/path") || len(err.Error()) > 1000 {
				t.Errorf("%s %q: %v; want a short ErrForeign with the path", name, data, err)
			}
			return
		}
		if twice, err := zookeeper.Rewrite(name, "/path", once); err != nil || !slices.Equal(twice, once) {
			t.Errorf("%s %q becomes %q and then %q, %v", name, data, once, twice, err)
		}
		var fields struct{ Format any }
		if err := json.Unmarshal(data, &fields); err != nil || fields.Format != 1.0 {
			t.Errorf("%s %q is read: format %v, %v", name, data, fields.Format, err)
		}
	})
}

// FuzzBounds: T and the end of a fence are there and within their limits, or the node
// is refused.
func FuzzBounds(f *testing.F) {
	for _, data := range []string{
		`{"format":1,"bound":1763000000000,"end":1}`, `{"format":1,"bound":1763000000000}`, `{"format":1,"end":2001}`, `{"format":1,"end":-1}`,
		`{"format":1,"bound":-1}`, `{"format":1}`, `{"format":1,"bound":null}`, `{"format":1,"bound":9223372036854775807}`, `{"bound":1}`, `{"format":1,"bound":1e3}`, "",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		has := func(field string) bool {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(data, &fields); err != nil {
				return false
			}
			for name := range fields {
				if strings.EqualFold(name, field) { // as encoding/json matches it
					return true
				}
			}
			return false
		}
		bound, err := zookeeper.ParseBound("/path", data)
		switch {
		case err == nil && (bound < 0 || bound > math.MaxInt64/4 || !has("bound")):
			t.Errorf("%q is read as T %d", data, bound)
		case err != nil && (!errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "/path")):
			t.Errorf("%q: %v; want ErrForeign with the path", data, err)
		}
		end, err := zookeeper.ParseEntry("/path", "order", data)
		switch {
		case err == nil && (fence.CheckEntry("order", end) != nil || !has("end")):
			t.Errorf("%q is read as end %d", data, end)
		case err != nil && !strings.Contains(err.Error(), "/path"):
			t.Errorf("%q: %v; want the path", data, err)
		}
	})
}

// FuzzServers: Java's connect string gives servers that a client accepts and a chroot
// that is a path, or an error that names the field.
func FuzzServers(f *testing.F) {
	for _, text := range []string{"zk1:2181,zk2:2181/ids", "zk1", "[::1]", "[::1]:2181", "::1", " a , b ", "a:1/", "a:1//b", "a/b/../c", "/ids", ",", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		servers, chroot, err := zookeeper.ParseServers(text)
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "servers") && !strings.Contains(err.Error(), "chroot") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		o, err := zookeeper.NewOriginal(zookeeper.Config{Servers: servers, Chroot: chroot, Name: "n"})
		if err != nil {
			t.Fatalf("%q gives %q and %q, which are refused: %v", text, servers, chroot, err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		again, root, err := zookeeper.ParseServers(strings.Join(servers, ",") + chroot)
		if err != nil || !slices.Equal(again, servers) || root != chroot {
			t.Errorf("%q gives %q and %q, and that %q and %q, %v", text, servers, chroot, again, root, err)
		}
	})
}
