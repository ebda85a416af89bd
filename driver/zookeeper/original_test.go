package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

const (
	addr    = "10.0.0.1:8080"
	now     = int64(1_763_000_000_000)
	horizon = int64(600_000)
	quiet   = int64(80_000)
	javaLag = int64(10_000)
)

// request is that of a new process.
func request(address string) worker.Request {
	return worker.Request{
		Namespace: worker.Namespace{Name: "prod", Fingerprint: javaLayout}, Address: address, Nonce: rand.Text(),
		Numbers: leaf.Range{Lo: 0, Hi: 1024}, Now: now, Bound: now + horizon, Margin: 5000, Quiet: now + quiet,
	}
}

// declared returns an original's place whose namespace is declared new.
func declared(t *testing.T) place {
	t.Helper()
	p := newPlace(t, server.ZooKeeper(t))
	declare(t, p.original(t))
	return p
}

func declare(t *testing.T, r worker.Registry) {
	t.Helper()
	if err := r.Init(ctx(t), request(addr).Namespace); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, r worker.Registry, req worker.Request) worker.Record {
	t.Helper()
	got, err := r.Claim(ctx(t), req)
	if err != nil {
		t.Fatalf("Claim(%s): %v", req.Address, err)
	}
	return got
}

// java creates a child as the Java server does.
func (p place) java(t *testing.T, address string, timestamp int64) (path string) {
	t.Helper()
	return p.create(t, p.root()+"/forever/"+address+"-", javaData(address, timestamp), zk.FlagSequence)
}

func javaData(address string, timestamp int64) string {
	ip, port, _ := strings.Cut(address, ":")
	return fmt.Sprintf(`{"ip":"%s","port":"%s","timestamp":%d}`, ip, port, timestamp)
}

// TestOriginalWritesWhatJavaReads compares every byte that a Java server may see.
func TestOriginalWritesWhatJavaReads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ address, ip, port string }{
		{"10.0.0.1:8080", "10.0.0.1", "8080"},
		{"[2001:db8::1]:8080", "[2001:db8::1]", "8080"},
		{"leaf.example:80", "leaf.example", "80"},
	} {
		t.Run(tt.address, func(t *testing.T) {
			t.Parallel()
			p := declared(t)
			o := p.original(t)
			r := claim(t, o, request(tt.address))
			name := fmt.Sprintf("%s-%010d", tt.address, r.Number)
			want := func(timestamp int64) {
				t.Helper()
				if got := p.children(t, p.root()+"/forever"); !slices.Equal(got, []string{name}) {
					t.Fatalf("children of forever = %q; want %q", got, name)
				}
				text := fmt.Sprintf(`{"ip":%q,"port":%q,"timestamp":%d}`, tt.ip, tt.port, timestamp)
				if got := p.get(t, p.root()+"/forever/"+name); got != text {
					t.Fatalf("data = %s; want %s", got, text)
				}
			}
			want(now + horizon)
			r, err := o.Renew(ctx(t), r, now+horizon+3000)
			if err != nil {
				t.Fatal(err)
			}
			want(now + horizon + 3000)
			if err := o.Release(ctx(t), r, now+1); err != nil {
				t.Fatal(err)
			}
			want(now + 1)
		})
	}
}

func TestOriginalSkipsNumberZero(t *testing.T) {
	t.Parallel()
	p := declared(t)
	for i := int64(1); i < 4; i++ {
		if r := claim(t, p.original(t), request(fmt.Sprintf("10.0.0.%d:8080", i))); r.Number != i {
			t.Errorf("claim %d got number %d", i, r.Number)
		}
	}
	if got := p.children(t, p.root()+"/forever"); len(got) != 3 {
		t.Errorf("children of forever = %q; want three", got)
	}
}

func TestOriginalRefusesAddresses(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	o := p.original(t)
	for _, address := range []string{"", "8080", ":8080", "host:", "my-host:8080", "10.0.0.1:80-80", "a/b:1", "a b:1", "a\n:1", "10.0.0.1:8080-0000000001"} {
		if r, err := o.Claim(ctx(t), request(address)); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Claim by %q = %+v, %v; want ErrBadRequest", address, r, err)
		}
	}
	if names := p.children(t, p.cfg.Chroot); len(names) > 0 {
		t.Errorf("refused claims left %q", names)
	}
}

// TestOriginalAdoptsJavaNode: the number of a Java server that was upgraded in place.
func TestOriginalAdoptsJavaNode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		timestamp int64
		declared  bool
		floor     int64
	}{
		{"stopped long ago", now - 1_000_000, true, now - 1_000_000 + javaLag},
		{"stopped just now", now - 1, true, now - 1 + javaLag},
		{"nobody declared the namespace", now - 1_000_000, false, now + quiet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, server.ZooKeeper(t))
			p.java(t, "10.0.0.9:8080", now) // another one
			path := p.java(t, addr, tt.timestamp)
			o := p.original(t)
			if tt.declared {
				declare(t, o)
			}
			req := request(addr)
			short, cancel := context.WithTimeout(t.Context(), watch*2/3)
			defer cancel()
			if r, err := o.Claim(short, req); err == nil {
				t.Fatalf("Claim before the child was watched = %+v", r)
			}
			r := claim(t, o, req)
			if r.Number != 1 || r.Floor != tt.floor || r.Bound < r.Floor {
				t.Errorf("claim = %+v; want number 1 from %d on", r, tt.floor)
			}
			if got := p.get(t, path); got != javaData(addr, r.Bound) {
				t.Errorf("data = %s; want timestamp %d", got, r.Bound)
			}
			if again := claim(t, p.original(t), req); again != r {
				t.Errorf("repeated claim = %+v; want %+v", again, r)
			}
			if r := claim(t, o, request("10.0.0.2:8080")); r.Number != 2 {
				t.Errorf("a fresh claim got number %d", r.Number)
			}
		})
	}
}

// TestOriginalAfterJava: the wait of a namespace that nobody declared counts from the
// birth of forever, before which there may have been a wipe.
func TestOriginalAfterJava(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, tt := range []struct {
		name string
		age  int64 // of forever
		wait int64
	}{
		{"forever is old", quiet + 1000, 0},
		{"forever is young", quiet - 30_000, 30_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			p.java(t, "10.0.0.9:8080", 1)
			_, stat, err := p.zk.Get(p.root() + "/forever")
			if err != nil {
				t.Fatal(err)
			}
			req := request(addr)
			req.Now = stat.Ctime + tt.age
			req.Quiet, req.Bound = req.Now+quiet, req.Now+horizon
			if r := claim(t, p.original(t), req); r.Number != 1 || max(0, r.Floor-req.Now) != tt.wait {
				t.Errorf("claim = %+v at %d; want number 1 and a wait of %d", r, req.Now, tt.wait)
			}
		})
	}
}

// TestOriginalForeverDeleted: another forever counts from 0 again, and whoever had a
// number in the old one may not know it yet.
func TestOriginalForeverDeleted(t *testing.T) {
	t.Parallel()
	p := declared(t)
	o := p.original(t)
	r := claim(t, o, request(addr))
	p.remove(t, p.root()+"/forever")
	p.remove(t, p.root()+"/leaf_owner")
	p.create(t, p.root()+"/leaf_owner", "", 0)
	for i := range 2 {
		got := claim(t, p.original(t), request(fmt.Sprintf("10.0.0.%d:8080", 2+i)))
		if got.Floor != now+quiet {
			t.Errorf("claim %d in the new forever = %+v; want the floor %d", i, got, now+quiet)
		}
	}
	if got, err := o.Renew(ctx(t), r, r.Bound+1); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew of a number of the old forever = %+v, %v; want ErrLost", got, err)
	}
}

// TestOriginalAdoptsZero: a Java server may have number 0 by right; only a fresh claim
// skips it.
func TestOriginalAdoptsZero(t *testing.T) {
	t.Parallel()
	p := declared(t)
	p.java(t, addr, now-1)
	if r := claim(t, p.original(t), request(addr)); r.Number != 0 || r.Floor != now-1+javaLag {
		t.Errorf("claim = %+v; want number 0 from %d on", r, now-1+javaLag)
	}
}

// TestOriginalDetectsJavaTwin: a Java server with our address lives and reports.
func TestOriginalDetectsJavaTwin(t *testing.T) {
	t.Parallel()
	p := declared(t)
	path := p.java(t, addr, now)
	p.cfg.AdoptWatch = 3 * time.Second
	o := p.original(t)
	req := request(addr)
	short, cancel := context.WithTimeout(t.Context(), p.cfg.AdoptWatch/2)
	defer cancel()
	if r, err := o.Claim(short, req); !errors.Is(err, worker.ErrTaken) {
		t.Fatalf("Claim with a deadline before the watch is over = %+v, %v; want ErrTaken", r, err)
	}
	p.set(t, path, javaData(addr, now+1))
	if r, err := o.Claim(ctx(t), req); !errors.Is(err, worker.ErrTaken) || !strings.Contains(err.Error(), path) {
		t.Fatalf("Claim of a child that a Java server writes = %+v, %v; want ErrTaken with %s", r, err, path)
	}
	if got := p.get(t, path); got != javaData(addr, now+1) {
		t.Errorf("data = %s although the claim was refused", got)
	}
	if r := claim(t, o, req); r.Floor != now+1+javaLag {
		t.Errorf("claim after the Java server went = %+v; want the floor %d", r, now+1+javaLag)
	}
}

// TestOriginalLosesToJava: a Java server comes while we run, or after we ran.
func TestOriginalLosesToJava(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{false, true} {
		t.Run(fmt.Sprintf("released %v", released), func(t *testing.T) {
			t.Parallel()
			p := declared(t)
			o := p.original(t)
			r := claim(t, o, request(addr))
			if released {
				if err := o.Release(ctx(t), r, now+5); err != nil {
					t.Fatal(err)
				}
			}
			path := p.root() + "/forever/" + addr + "-0000000001"
			p.set(t, path, javaData(addr, now+3000))
			if got, err := o.Renew(ctx(t), r, now+2*horizon); !errors.Is(err, worker.ErrLost) {
				t.Errorf("Renew = %+v, %v; want ErrLost", got, err)
			}
			if err := o.Release(ctx(t), r, now); !errors.Is(err, worker.ErrLost) {
				t.Errorf("Release: %v; want ErrLost", err)
			}
			if got := p.get(t, path); got != javaData(addr, now+3000) {
				t.Errorf("data = %s; a lost claim overwrote it", got)
			}
			want := max(r.Bound, now+3000+javaLag) // our own T still holds
			if released {
				want = now + 3000 + javaLag
			}
			next := request(addr)
			next.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: now}
			if got := claim(t, o, next); got.Number != r.Number || got.Floor != want {
				t.Errorf("claim after the Java server went = %+v; want number %d from %d on", got, r.Number, want)
			}
		})
	}
}

func TestOriginalRefusesJavaOfAnotherLayout(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	o := p.original(t)
	req := request(addr)
	req.Namespace.Fingerprint = "another"
	first := claim(t, o, req) // no Java server here yet
	path := p.java(t, "10.0.0.9:8080", now)
	for _, nonce := range []string{first.Nonce, "new"} {
		req.Nonce = nonce
		if r, err := o.Claim(ctx(t), req); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), path) {
			t.Errorf("Claim beside a Java server = %+v, %v; want ErrForeign with %s", r, err, path)
		}
	}
}

// TestOriginalFull: a number outside the range leaves nothing behind.
func TestOriginalFull(t *testing.T) {
	t.Parallel()
	p := declared(t)
	for range 4 {
		p.java(t, "10.0.0.9:8080", now)
	}
	o := p.original(t)
	for range 2 {
		req := request(addr)
		req.Numbers = leaf.Range{Lo: 0, Hi: 3}
		if r, err := o.Claim(ctx(t), req); !errors.Is(err, worker.ErrFull) || !strings.Contains(err.Error(), "not reused") {
			t.Fatalf("Claim = %+v, %v; want ErrFull that says that numbers are not reused", r, err)
		}
	}
	for folder, want := range map[string]int{"forever": 4, "leaf_owner": 0, "leaf_temporary": 0} {
		if got := p.children(t, p.root()+"/"+folder); len(got) != want {
			t.Errorf("%s holds %q; want %d nodes", folder, got, want)
		}
	}
	outside := request("10.0.0.9:8080")
	outside.Numbers = leaf.Range{Lo: 100, Hi: 200}
	if r, err := o.Claim(ctx(t), outside); !errors.Is(err, worker.ErrFull) {
		t.Errorf("Claim of an existing number outside the range = %+v, %v; want ErrFull", r, err)
	}
	if got := p.children(t, p.root()+"/forever"); len(got) != 4 {
		t.Errorf("forever holds %q; a child of others was deleted", got)
	}
}

// TestOriginalSeveralChildren: Java takes any of them; each has a T of its own.
func TestOriginalSeveralChildren(t *testing.T) {
	t.Parallel()
	p := declared(t)
	for _, ts := range []int64{now - 100_000, now - 1, now - 50_000} {
		p.java(t, addr, ts)
	}
	req := request(addr)
	req.Numbers = leaf.Range{Lo: 1, Hi: 1024}
	r := claim(t, p.original(t), req)
	if r.Number != 1 || r.Floor != now-1+javaLag {
		t.Errorf("claim = %+v; want number 1, the lowest of the range, from its own timestamp on", r)
	}
	next := request(addr) // the whole range now
	next.Previous = &worker.Previous{Number: r.Number, Nonce: r.Nonce, Inner: now}
	if again := claim(t, p.original(t), next); again.Number != 1 {
		t.Errorf("next claim = %+v; want the number that it had", again)
	}
}

// TestOriginalLosses: what an operator or an accident may do to our nodes.
func TestOriginalLosses(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, tt := range []struct {
		name   string
		remove string // below the root; %s is the nonce
		floor  func(r worker.Record) int64
	}{
		{"owner node", "leaf_owner/" + addr, func(r worker.Record) int64 { return r.Bound + javaLag }},
		{"node of the nonce", "leaf_owner/" + addr + "/%s", func(r worker.Record) int64 { return r.Bound }},
		{"child of forever", "forever/" + addr + "-0000000001", func(worker.Record) int64 { return 0 }},
		{"forever", "forever", func(worker.Record) int64 { return 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			o := p.original(t)
			declare(t, o)
			r := claim(t, o, request(addr))
			p.remove(t, p.root()+"/"+strings.ReplaceAll(tt.remove, "%s", r.Nonce))
			for range 2 {
				if got, err := o.Renew(ctx(t), r, r.Bound+1000); !errors.Is(err, worker.ErrLost) {
					t.Errorf("Renew = %+v, %v; want ErrLost", got, err)
				}
			}
			o.Close()
			if tt.name == "forever" {
				p.create(t, p.root()+"/forever", "", 0)
			}
			next := p.original(t)
			got := claim(t, next, request(addr))
			if got.Floor < tt.floor(r) || got.Number == r.Number && got.Floor < r.Bound {
				t.Errorf("next claim = %+v; want a floor of at least %d, and T %d of number %d in any case", got, tt.floor(r), r.Bound, r.Number)
			}
			if _, err := next.Renew(ctx(t), got, got.Bound+1); err != nil {
				t.Errorf("Renew of the next claim: %v", err)
			}
		})
	}
}

// TestOriginalVersionsComeBack: after a wipe the same address makes the same nodes with
// the same data versions, and still the first owner can neither renew nor disturb.
func TestOriginalVersionsComeBack(t *testing.T) {
	t.Parallel()
	p := declared(t)
	first := p.original(t)
	r := claim(t, first, request(addr))
	p.remove(t, p.root())
	second := p.original(t)
	next := claim(t, second, request(addr))
	for range 2 {
		if got, err := first.Renew(ctx(t), r, r.Bound+horizon); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Renew = %+v, %v; want ErrLost", got, err)
		}
	}
	if err := first.Release(ctx(t), r, now); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Release: %v; want ErrLost", err)
	}
	if records, err := second.List(ctx(t)); err != nil || len(records) != 1 || records[0] != next {
		t.Errorf("List = %+v, %v; want %+v", records, err, next)
	}
	if _, err := second.Renew(ctx(t), next, next.Bound+1); err != nil {
		t.Errorf("Renew by the second owner: %v", err)
	}
}

// TestOriginalCountsAnew: without forever ZooKeeper counts from 0 again, and the
// owner nodes are all that is left of T.
func TestOriginalCountsAnew(t *testing.T) {
	t.Parallel()
	p := declared(t)
	first := p.original(t)
	r := claim(t, first, request(addr))
	p.remove(t, p.root()+"/forever")
	p.create(t, p.root()+"/forever", "", 0)
	o := p.original(t)
	if kept, err := o.List(ctx(t)); err != nil || len(kept) != 1 || kept[0].Bound != r.Bound || kept[0].Nonce != "" {
		t.Errorf("List = %+v, %v; want what is left of number %d: T %d", kept, err, r.Number, r.Bound)
	}
	if got := claim(t, o, request("10.0.0.2:8080")); got.Number == r.Number && got.Floor < r.Bound {
		t.Errorf("claim of another address = %+v, below T %d of the same number", got, r.Bound)
	}
	p.java(t, "10.0.0.3:8080", now)
	if got := claim(t, o, request("10.0.0.3:8080")); got.Number == r.Number && got.Floor < r.Bound {
		t.Errorf("adopted claim = %+v, below T %d of the same number", got, r.Bound)
	}
}

// TestOriginalGarbage: what we do not need is left alone, what we need and cannot
// read is refused with its path.
func TestOriginalGarbage(t *testing.T) {
	t.Parallel()
	p := declared(t)
	o := p.original(t)
	forever := p.root() + "/forever/"
	for _, name := range []string{"garbage", "-", "10.0.0.1:8080-", addr + "-1", addr + "-00000000x1", "my-host:80-0000000005", "-0000000007"} {
		p.create(t, forever+name, "\xff garbage", 0)
	}
	foreign := p.create(t, forever+"10.0.0.9:8080-", "garbage", zk.FlagSequence)
	r := claim(t, o, request(addr))
	if _, err := o.Renew(ctx(t), r, r.Bound+1); err != nil {
		t.Errorf("Renew beside garbage: %v", err)
	}
	if _, err := o.List(ctx(t)); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), foreign) {
		t.Errorf("List: %v; want ErrForeign with %s", err, foreign)
	}
	p.set(t, foreign, javaData("10.0.0.9:8080", now))
	if records, err := o.List(ctx(t)); err != nil || len(records) != 2 {
		t.Errorf("List = %+v, %v; want two records", records, err)
	}
	o.Close()
	for path, data := range map[string]string{
		forever + addr + fmt.Sprintf("-%010d", r.Number): `{"ip":"10.0.0.1","port":"8080","timestamp":-1}`,
		p.root() + "/leaf_owner/" + addr:                 `{"format":2}`,
		p.root() + "/leaf_namespace":                     `{"format":1,"name":"prod","unknown":1}`,
	} {
		before := p.get(t, path)
		p.set(t, path, data)
		if got, err := p.original(t).Claim(ctx(t), request(addr)); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), path) {
			t.Errorf("Claim with %s in %s = %+v, %v; want ErrForeign with the path", data, path, got, err)
		}
		p.set(t, path, before)
	}
	if got, err := p.original(t).Renew(ctx(t), r, r.Bound+1); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew after somebody wrote = %+v, %v; want ErrLost", got, err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := zookeeper.Config{Servers: []string{"127.0.0.1:2181"}, Name: "leaf"}
	for name, change := range map[string]func(*zookeeper.Config){
		"no servers":      func(c *zookeeper.Config) { c.Servers = nil },
		"no port":         func(c *zookeeper.Config) { c.Servers = []string{"host"} },
		"no name":         func(c *zookeeper.Config) { c.Name = "" },
		"slash":           func(c *zookeeper.Config) { c.Name = "a/b" },
		"dots":            func(c *zookeeper.Config) { c.Name = ".." },
		"long name":       func(c *zookeeper.Config) { c.Name = strings.Repeat("x", 65) },
		"relative chroot": func(c *zookeeper.Config) { c.Chroot = "ids" },
		"double slash":    func(c *zookeeper.Config) { c.Chroot = "/a//b" },
		"short session":   func(c *zookeeper.Config) { c.SessionTimeout = time.Millisecond },
		"negative watch":  func(c *zookeeper.Config) { c.AdoptWatch = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := zookeeper.NewOriginal(cfg); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: NewOriginal: %v; want ErrBadRequest", name, err)
		}
	}
	if o, err := zookeeper.NewOriginal(good); err != nil {
		t.Error(err)
	} else if err := errors.Join(o.Close(), o.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestParseServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text    string
		servers []string
		chroot  string
	}{
		{"127.0.0.1:2181", []string{"127.0.0.1:2181"}, ""},
		{"a, b:1,[::1]:3", []string{"a:2181", "b:1", "[::1]:3"}, ""},
		{"a:1,b:2/ids/leaf/", []string{"a:1", "b:2"}, "/ids/leaf"},
	} {
		servers, chroot, err := zookeeper.ParseServers(tt.text)
		if err != nil || !slices.Equal(servers, tt.servers) || chroot != tt.chroot {
			t.Errorf("ParseServers(%q) = %q, %q, %v; want %q, %q", tt.text, servers, chroot, err, tt.servers, tt.chroot)
		}
	}
	for _, text := range []string{"", ",", "a:1,", "a:1/x//y"} {
		if servers, chroot, err := zookeeper.ParseServers(text); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("ParseServers(%q) = %q, %q, %v; want ErrBadRequest", text, servers, chroot, err)
		}
	}
}
