package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// copied returns a place with the nodes of p, made one by one as a program does that restores a dump or moves a path to
// another ensemble. The new forever has counted its children only, so it counts below the numbers of some. The ephemeral nodes of
// processes that ran then are ordinary nodes there, which end with no session. Every node was made first and set then, as a
// program does that copies twice.
func (p place) copied(t *testing.T) place {
	t.Helper()
	next := p.elsewhere()
	var all func(at string)
	all = func(at string) {
		for _, name := range p.children(t, at) {
			path := at + "/" + name
			to := next.create(t, next.cfg.Chroot+strings.TrimPrefix(path, p.cfg.Chroot), "", 0)
			next.set(t, to, p.get(t, path))
			all(path)
		}
	}
	all(p.cfg.Chroot)
	return next
}

// TestOriginalPathIsCopied: ZooKeeper gives a fresh address of a copied path a number that another address has.
func TestOriginalPathIsCopied(t *testing.T) {
	t.Parallel()
	for _, crashed := range []bool{false, true} {
		t.Run(fmt.Sprintf("crashed %v", crashed), func(t *testing.T) {
			t.Parallel()
			p := declared(t)
			address := func(i int) string { return fmt.Sprintf("10.0.0.%d:8080", i) }
			for i := range 3 {
				claim(t, p.original(t), request(address(1+i)))
			}
			p = p.copied(t)
			has := map[int64]string{}
			for _, i := range []int{4, 5, 1, 2, 3} { // the new ones first
				req := request(address(i))
				if crashed && i == 4 {
					p.halfway(t, req)
				}
				r := claim(t, p.original(t), req)
				if other := has[r.Number]; other != "" {
					t.Errorf("%s and %s have number %d", other, req.Address, r.Number)
				}
				has[r.Number] = req.Address
			}
			if got := p.children(t, p.root()+"/forever"); len(got) != len(has) {
				t.Errorf("forever holds %q; want a child for each of %v", got, has)
			}
		})
	}
}

// TestPresencesOfACopiedPath: what a copy has kept of the nodes that ran then is no peer. None of them would tell its time, and
// with snowflake.peer-policy refuse no node would start.
func TestPresencesOfACopiedPath(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, place) worker.Registry{
		"original": func(t *testing.T, p place) worker.Registry { t.Helper(); return p.original(t) },
		"recycle":  func(t *testing.T, p place) worker.Registry { t.Helper(); return p.recycle(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, server.ZooKeeper(t))
			peer := worker.Peer{Address: addr, Clock: "http://" + addr, Nonce: "n", Number: 1}
			if err := open(t, p).Announce(ctx(t), peer); err != nil {
				t.Fatal(err)
			}
			r := open(t, p.copied(t))
			if got, err := r.Peers(ctx(t)); err != nil || len(got) > 0 {
				t.Errorf("Peers = %+v, %v; want none", got, err)
			}
			peer.Nonce = "its next process"
			if err := r.Announce(ctx(t), peer); err != nil {
				t.Fatal(err)
			}
			if got, err := r.Peers(ctx(t)); err != nil || len(got) != 1 || got[0] != peer {
				t.Errorf("Peers = %+v, %v; want %+v", got, err, peer)
			}
		})
	}
}

// halfway leaves what a process leaves that ends right after it has created its child.
func (p place) halfway(t *testing.T, req worker.Request) {
	t.Helper()
	p.create(t, p.root()+"/leaf_owner/"+req.Address, `{"format":1,"nonce":"gone","creating":true}`, 0)
	p.create(t, p.root()+"/forever/"+req.Address+"-", javaData(req.Address, now), zk.FlagSequence)
}

// TestOriginalSharesItsNumberWithJava: a Java server takes what ZooKeeper counts.
func TestOriginalSharesItsNumberWithJava(t *testing.T) {
	t.Parallel()
	const other = "10.0.0.9:8080"
	p := declared(t)
	claim(t, p.original(t), request(other)) // number 1
	p = p.copied(t)
	java := p.java(t, addr, now)
	o := p.original(t)
	short, cancel := context.WithTimeout(ctx(t), 4*watch)
	defer cancel()
	for _, address := range []string{addr, other} {
		r, err := o.Claim(short, request(address))
		if !errors.Is(err, worker.ErrTaken) || !strings.Contains(err.Error(), addr+"-0000000001") || !strings.Contains(err.Error(), other+"-0000000001") {
			t.Errorf("Claim by %s = %+v, %v; want ErrTaken with both nodes", address, r, err)
		}
	}
	p.remove(t, java) // as the error says
	if r := claim(t, o, request(addr)); r.Number < 2 {
		t.Errorf("claim after that = %+v; want a number of its own", r)
	}
	if r := claim(t, o, request(other)); r.Number != 1 {
		t.Errorf("claim of %s = %+v; want the number that it had", other, r)
	}
}
