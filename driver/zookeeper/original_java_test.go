package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

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
			o := p.original(t)
			if tt.declared {
				declare(t, o)
			}
			p.java(t, "10.0.0.9:8080", now) // another one
			path := p.java(t, addr, tt.timestamp)
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

// briefQuiet is shorter than the time in which a Java server that runs has written.
const briefQuiet = int64(20_000)

// TestOriginalAfterJava: the wait of a namespace that nobody declared counts from the
// birth of forever, before which there may have been a wipe. Without a Java server that
// writes, the registry may be a backup, and the wait counts from now.
func TestOriginalAfterJava(t *testing.T) {
	t.Parallel()
	const quiet = briefQuiet
	ns := server.ZooKeeper(t)
	for _, tt := range []struct {
		name string
		age  int64 // of forever
		wait int64
		init bool
	}{
		{"forever is old", quiet + 1000, 0, false},
		{"forever is young", quiet - 5_000, 5_000, false},
		{"forever is old, and no Java server writes", 61_000, quiet, false},
		{"forever is young, and leaf worker init ran", quiet - 5_000, 5_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			p.java(t, "10.0.0.9:8080", 1)
			if tt.init { // a registry that Java servers use is not new
				declare(t, p.original(t))
			}
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
	const watch = 3 * time.Second
	p.cfg.SetAdoptWatch(watch)
	o := p.original(t)
	req := request(addr)
	short, cancel := context.WithTimeout(t.Context(), watch/2)
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
		if r, err := o.Claim(ctx(t), req); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "sets another epoch, do as rule 2 of docs/MIGRATION.md#snowflake-mode") || !strings.Contains(err.Error(), "tables of their own") {
			t.Errorf("Claim beside a Java server = %+v, %v; want ErrForeign with %s, and that another name is not enough", r, err, path)
		}
	}
}
