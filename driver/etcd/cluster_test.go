package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestLeaderLost: the leader of three nodes dies, or freezes with its connections
// open. Renewals fail for a while at most, and never say that the claim is lost.
func TestLeaderLost(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(e *server.Ensemble, i int)
		back func(t *testing.T, e *server.Ensemble, i int)
	}{
		{"killed", func(e *server.Ensemble, i int) { e.Kill(i) }, func(t *testing.T, e *server.Ensemble, i int) {
			if err := e.Restart(short(t), i); err != nil {
				t.Fatal(err)
			}
		}},
		{"frozen", func(e *server.Ensemble, i int) { e.Pause(i) }, func(_ *testing.T, e *server.Ensemble, i int) { e.Resume(i) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := server.OwnEtcd(t, 3)
			defer e.Kill() // three nodes that leave in good order take 6 s
			p := newPlace(t, e.Servers(), "/leaf")
			pool := p.open(t)
			defer pool.Close()
			if err := pool.Init(short(t), space); err != nil {
				t.Fatal(err)
			}
			req := worker.Request{
				Namespace: space, Address: "10.0.0.1:8080", Nonce: "mine", Numbers: leaf.Range{Lo: 0, Hi: 1024}, Now: 1000, Bound: 2000,
			}
			own, err := pool.Claim(short(t), req)
			if err != nil {
				t.Fatal(err)
			}
			renew := func(bound int64) {
				eventually(t, "Renew", func(c context.Context) error {
					next, err := pool.Renew(c, own, bound)
					if errors.Is(err, worker.ErrLost) {
						t.Fatalf("Renew: %v", err)
					}
					if err == nil {
						own = next
					}
					return err
				})
			}
			leader, err := e.Leader(short(t))
			if err != nil {
				t.Fatal(err)
			}
			tt.lose(e, leader)
			start := time.Now()
			renew(3000)
			t.Logf("renewed %v after the leader was lost", time.Since(start).Round(time.Millisecond))
			other := p.open(t) // a process that starts now
			defer other.Close()
			eventually(t, "Claim", func(c context.Context) error {
				req := req
				req.Nonce = "other"
				r, err := other.Claim(c, req)
				if err == nil && r.Number == own.Number {
					t.Fatalf("both hold number %d", r.Number)
				}
				return err
			})
			tt.back(t, e, leader)
			for bound := int64(4000); bound < 10_000; bound += 1000 {
				renew(bound)
			}
			if own.Bound != 9000 {
				t.Errorf("T is %d; want 9000", own.Bound)
			}
		})
	}
}

// TestServerComesLater: the registry may start after the node, and a call that waits
// for it goes through.
func TestServerComesLater(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	p.proxies[0].Refuse()
	records := p.records(t)
	if err := within(t, func(c context.Context) error { _, err := records.List(c); return err }); err == nil {
		t.Error("List succeeded while connections are refused")
	}
	done := make(chan error, 1)
	go func() {
		_, err := records.List(short(t))
		done <- err
	}()
	if err := p.proxies[0].Accept(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("List: %v", err)
	}
}

// TestConnectionsReset: a dead connection costs one call at most.
func TestConnectionsReset(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	records := p.records(t)
	for range 5 {
		eventually(t, "List", func(c context.Context) error { _, err := records.List(c); return err })
		p.proxies[0].Cut()
	}
}

// withPasswords returns an etcd that asks who is there. The user leaf, with the password secret, has the rights of the role leaf,
// which are none.
func withPasswords(t *testing.T) (e *server.Ensemble, p *place) {
	t.Helper()
	e = server.OwnEtcd(t, 1)
	p = newPlace(t, e.Servers(), "/leaf")
	for _, step := range []func(context.Context) error{
		func(c context.Context) error { _, err := p.raw.UserAdd(c, "root", "r"); return err },
		func(c context.Context) error { _, err := p.raw.UserGrantRole(c, "root", "root"); return err },
		func(c context.Context) error { _, err := p.raw.UserAdd(c, "leaf", "secret"); return err },
		func(c context.Context) error { _, err := p.raw.RoleAdd(c, "leaf"); return err },
		func(c context.Context) error { _, err := p.raw.UserGrantRole(c, "leaf", "leaf"); return err },
		func(c context.Context) error { _, err := p.raw.AuthEnable(c); return err },
	} {
		if err := step(short(t)); err != nil {
			t.Fatal(err)
		}
	}
	return e, p
}

// asRoot returns a client that may do everything, until etcd is restarted: the library cannot log in again then.
func asRoot(t *testing.T, e *server.Ensemble) *clientv3.Client {
	t.Helper()
	root, err := clientv3.New(clientv3.Config{Endpoints: e.Servers(), Username: "root", Password: "r"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// grant gives the role leaf rights to the keys [from, to), or to the one key from if to is "".
func grant(t *testing.T, e *server.Ensemble, from, to string, right clientv3.PermissionType) {
	t.Helper()
	if _, err := asRoot(t, e).RoleGrantPermission(short(t), "leaf", from, to, right); err != nil {
		t.Fatal(err)
	}
}

// TestPassword: an etcd that asks who is there.
func TestPassword(t *testing.T) {
	e, p := withPasswords(t)
	grant(t, e, "/leaf/", "/leaf0", clientv3.PermissionType(clientv3.PermReadWrite)) // the rights that the package documents
	open := func(user, password string) *etcd.Records {
		cfg := p.config()
		cfg.Username, cfg.Password = user, password
		records, err := etcd.NewRecords(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { records.Close() })
		return records
	}
	records := open("leaf", "secret")
	declare(t, records)
	own := put(t, records, worker.Record{Number: 7, Nonce: "mine", Bound: 100})
	if err := records.Announce(short(t), worker.Peer{Nonce: "mine"}); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]*etcd.Records{"nobody": open("", ""), "wrong password": open("leaf", "guess")} {
		_, err := wrong.List(short(t))
		if err == nil || errors.Is(err, worker.ErrLost) || errors.Is(err, worker.ErrForeign) || strings.Contains(err.Error(), "guess") {
			t.Errorf("%s: List: %v", name, err)
		}
	}

	// The log-in is a conversation too.
	heal := p.partition()
	late := open("leaf", "secret")
	if err := within(t, func(c context.Context) error { _, err := late.List(c); return err }); err == nil {
		t.Error("List succeeded while nothing can pass")
	}
	if err := late.Close(); err != nil {
		t.Error(err)
	}
	heal()
	if err := e.Restart(short(t)); err != nil { // tokens do not survive this
		t.Fatal(err)
	}
	own.Bound = 200
	eventually(t, "List", func(c context.Context) error { _, err := records.List(c); return err })
	own = put(t, records, own)

	// A new password ends the log-ins at once.
	if _, err := asRoot(t, e).UserChangePassword(short(t), "leaf", "rotated"); err != nil {
		t.Fatal(err)
	}
	if _, err := records.List(short(t)); err == nil || strings.Contains(err.Error(), "rotated") {
		t.Errorf("List with the password of before: %v", err)
	}
	if !records.SetPassword("rotated") || records.SetPassword("rotated") {
		t.Error("SetPassword does not report what has changed")
	}
	own.Bound = 300
	put(t, records, own)

	// A store says what an administrator of etcd does.
	for name, c := range map[string]struct{ password, prefix, want string }{
		"a wrong password": {"guess", "/leaf/segment/x", "correct the user or the password"},
		"no right":         {"rotated", "/elsewhere", "etcdctl role grant-permission ROLE --prefix=true readwrite /elsewhere/"},
	} {
		cfg := p.config()
		cfg.Username, cfg.Password, cfg.Prefix = "leaf", c.password, c.prefix
		s, err := etcd.NewStore(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Reserve(short(t), order())
		if !errors.Is(err, segment.ErrDenied) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "guess") {
			t.Errorf("Reserve with %s: %v; want ErrDenied that says %q", name, err, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPasswordIsNotNeeded: an etcd that does not ask who is there yet.
func TestPasswordIsNotNeeded(t *testing.T) {
	ns := server.Etcd(t)
	cfg := newPlace(t, ns.Servers, ns.Root).config()
	cfg.Username, cfg.Password = "leaf", "secret"
	records, err := etcd.NewRecords(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	declare(t, records)
}
