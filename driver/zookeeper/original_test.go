package zookeeper_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
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

// TestOriginalSkipsWhatJavaReadsInTheName: in its first run at an address a Java server takes what stands between the first two
// hyphens of the whole path for its number.
func TestOriginalSkipsWhatJavaReadsInTheName(t *testing.T) {
	t.Parallel()
	for _, crashed := range []bool{false, true} {
		p := newPlace(t, server.ZooKeeper(t))
		p.cfg.Name = "pay-3-prod"
		declare(t, p.original(t))
		given := map[int64]bool{}
		for i := range 4 {
			req := request(fmt.Sprintf("10.0.0.%d:8080", i))
			if crashed && i == 2 { // number 3, because number 0 was skipped
				p.halfway(t, req)
			}
			given[claim(t, p.original(t), req).Number] = true
		}
		path, _ := strings.CutPrefix(p.java(t, "10.0.0.9:8080", now), p.cfg.Chroot)
		n, err := strconv.ParseInt(strings.Split(path, "-")[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if given[n] || len(given) != 4 {
			t.Errorf("crashed %v: the Java server at %s issues as worker %d; nodes have %v", crashed, path, n, given)
		}
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

// TestInitChangesNoNamespace: Init beside a namespace whose forever was deleted does not
// declare it new. The next claim waits for the owners of the numbers that are counted anew.
func TestInitChangesNoNamespace(t *testing.T) {
	t.Parallel()
	p := declared(t)
	r := claim(t, p.original(t), request(addr))
	before := p.get(t, p.root()+"/leaf_namespace")
	p.remove(t, p.root()+"/forever")
	p.remove(t, p.root()+"/leaf_owner")
	declare(t, p.original(t))
	if after := p.get(t, p.root()+"/leaf_namespace"); after != before {
		t.Errorf("Init changed the namespace from %s to %s", before, after)
	}
	got := claim(t, p.original(t), request("10.0.0.2:8080"))
	if got.Number != r.Number || got.Floor != now+quiet {
		t.Errorf("claim = %+v; want number %d from %d on", got, r.Number, now+quiet)
	}
}

// TestForeverDeletedTwice: a claim that makes the namespace anew forgets no wait of the
// namespace before.
func TestForeverDeletedTwice(t *testing.T) {
	t.Parallel()
	p := declared(t)
	claim(t, p.original(t), request(addr))
	for i, less := range []int64{0, 30_000} {
		p.remove(t, p.root()+"/forever")
		p.remove(t, p.root()+"/leaf_owner")
		req := request(fmt.Sprintf("10.0.0.%d:8080", 2+i))
		req.Quiet -= less // such as that of a node whose clock is behind
		if got := claim(t, p.original(t), req); got.Floor != now+quiet {
			t.Errorf("claim after deletion %d = %+v; want the floor %d", i, got, now+quiet)
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

// TestOriginalNamesTheLastOwner: a claim says whose T its floor is, also when it is repeated after
// a lost answer, so that the node can tell for whom it waits.
func TestOriginalNamesTheLastOwner(t *testing.T) {
	t.Parallel()
	p := declared(t)
	first := p.original(t)
	r := claim(t, first, request(addr))
	if r.After != "" {
		t.Errorf("first claim = %+v; want no owner before it", r)
	}
	if err := first.Free(ctx(t), r.Number); err != nil {
		t.Fatal(err)
	}
	req := request(addr)
	second := p.original(t)
	for range 2 {
		if next := claim(t, second, req); next.Floor != r.Bound || next.After != addr {
			t.Errorf("next claim = %+v; want the floor %d, after %s", next, r.Bound, addr)
		}
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

// listed returns a claim as a list shows it.
func listed(r worker.Record) worker.Record {
	r.Incarnation = ""
	return r
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
	if records, err := second.List(ctx(t)); err != nil || len(records) != 1 || records[0] != listed(next) {
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
	if all, err := o.List(ctx(t)); err != nil || !slices.ContainsFunc(all, func(r worker.Record) bool { return r.Number >= 0 && strings.Contains(r.Damage, foreign) }) {
		t.Errorf("List = %+v, %v; want a number with a damage, with %s", all, err, foreign)
	}
	p.set(t, foreign, javaData("10.0.0.9:8080", now))
	if records, err := o.List(ctx(t)); err != nil || len(records) != 2 {
		t.Errorf("List = %+v, %v; want two records", records, err)
	}
	lonely := p.create(t, p.root()+"/leaf_owner/10.0.0.8:8080", "garbage", 0)
	if all, err := o.List(ctx(t)); err != nil || !slices.ContainsFunc(all, func(r worker.Record) bool { return r.Number == -1 && strings.Contains(r.Damage, lonely) }) {
		t.Errorf("List = %+v, %v; want a damage without a number, with %s", all, err, lonely)
	}
	if r, err := o.Renew(ctx(t), r, r.Bound+2); err != nil {
		t.Errorf("Renew beside an owner that cannot be read: %+v, %v", r, err)
	}
	o.Close()
	for _, tt := range []struct {
		path, data string
		want       error
	}{
		{forever + addr + fmt.Sprintf("-%010d", r.Number), `{"ip":"10.0.0.1","port":"8080","timestamp":-1}`, worker.ErrDamaged},
		{p.root() + "/leaf_owner/" + addr, `{"format":2}`, worker.ErrDamaged},
		{p.root() + "/leaf_namespace", `{"format":1,"name":"prod","unknown":1}`, worker.ErrForeign},
	} {
		before := p.get(t, tt.path)
		p.set(t, tt.path, tt.data)
		got, err := p.original(t).Claim(ctx(t), request(addr))
		if errors.Is(err, worker.ErrForeign) != (tt.want == worker.ErrForeign) || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.path) { //nolint:errorlint // which of two it is
			t.Errorf("Claim with %s in %s = %+v, %v; want %v alone, with the path", tt.data, tt.path, got, err, tt.want)
		}
		p.set(t, tt.path, before)
	}
	if got, err := p.original(t).Renew(ctx(t), r, r.Bound+1); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew after somebody wrote = %+v, %v; want ErrLost", got, err)
	}
}

// TestOriginalUnreadableAddress: a node of the claimer's own address cannot be read. The owner has
// lost its claim, and the next process is refused until the node is deleted, as the error says. It
// issues nothing below the T of the one before.
func TestOriginalUnreadableAddress(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"/leaf_owner/" + addr, "/forever/"} {
		p := declared(t)
		first := p.original(t)
		r := claim(t, first, request(addr))
		path := p.root() + what
		if what == "/forever/" {
			path += fmt.Sprintf("%s-%010d", addr, r.Number)
		}
		p.set(t, path, "garbage")
		if _, err := first.Renew(ctx(t), r, r.Bound+1); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Renew with garbage in %s: %v; want ErrLost", path, err)
		}
		first.Close()
		_, err := p.original(t).Claim(ctx(t), request(addr))
		said, command, found := strings.Cut(fmt.Sprint(err), "stop every process with the address "+addr+", and then, ")
		if !errors.Is(err, worker.ErrDamaged) || errors.Is(err, worker.ErrForeign) || !found || !strings.Contains(said, path) {
			t.Fatalf("Claim with garbage in %s: %v; want ErrDamaged alone, with the path and the cure", path, err)
		}
		p.reset(t, command)
		next := request(addr)
		if got := claim(t, p.original(t), next); got.Number == r.Number && got.Floor < r.Bound {
			t.Errorf("claim after %q = %+v, below T %d of the same number", command, got, r.Bound)
		}
	}
}

// TestOriginalFreesEachOwner: after the numbers were counted anew, two addresses have had one number. An operator who
// releases it takes it from the one that has it now, too.
func TestOriginalFreesEachOwner(t *testing.T) {
	t.Parallel()
	p := declared(t)
	o := p.original(t)
	const before, after = "10.0.0.8:8080", "10.0.0.9:8080"
	owners := map[string]worker.Record{}
	for _, address := range []string{before, after, addr} { // in whatever order ZooKeeper lists them
		p.remove(t, p.root()+"/forever")
		owners[address] = claim(t, o, request(address))
	}
	live := owners[addr]
	for address, r := range owners {
		if r.Number != live.Number {
			t.Fatalf("%s has number %d and %s %d: the test proves nothing", address, r.Number, addr, live.Number)
		}
	}
	if err := o.Free(ctx(t), live.Number); err != nil {
		t.Fatal(err)
	}
	if got, err := o.Renew(ctx(t), live, live.Bound+1000); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew of a number that an operator has released = %+v, %v; want ErrLost", got, err)
	}
	for address := range owners {
		if data := p.get(t, p.root()+"/leaf_owner/"+address); !strings.Contains(data, `"released":true`) {
			t.Errorf("the owner %s is %s", address, data)
		}
	}
}
