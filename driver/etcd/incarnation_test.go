package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// TestIncarnationIsGone: when the key that every write compares is gone or another one, or the
// namespace names none, an error says so, and what to delete. A claim does not try until its time is up, and an
// owner goes on until its T.
func TestIncarnationIsGone(t *testing.T) {
	ns := server.Etcd(t)
	for name, spoil := range map[string]func(p *place) error{
		"gone":     func(p *place) error { _, err := p.raw.Delete(t.Context(), p.prefix+"/incarnation"); return err },
		"replaced": func(p *place) error { _, err := p.raw.Put(t.Context(), p.prefix+"/incarnation", "another"); return err },
		"of neither": func(p *place) error {
			_, err := p.raw.Put(t.Context(), p.prefix+"/namespace", `{"name":"prod","fingerprint":"f","issue_from":0}`)
			if err == nil {
				_, err = p.raw.Delete(t.Context(), p.prefix+"/incarnation")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ns.Servers, ns.Root+"/"+name)
			registry := p.open(t)
			defer registry.Close()
			request := func(nonce string) worker.Request {
				return worker.Request{
					Namespace: worker.Namespace{Name: "prod", Fingerprint: "f"}, Address: "10.0.0.1:80", Nonce: nonce,
					Numbers: leaf.Range{Lo: 0, Hi: 10}, Now: 1000, Bound: 2000, Quiet: 5000,
				}
			}
			if err := registry.Init(short(t), request("").Namespace); err != nil {
				t.Fatal(err)
			}
			own, err := registry.Claim(short(t), request("first"))
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(p); err != nil {
				t.Fatal(err)
			}
			_, claimed := registry.Claim(short(t), request("second"))
			_, renewed := registry.Renew(short(t), own, 3000)
			for what, err := range map[string]error{"Claim": claimed, "Renew": renewed} {
				if err == nil || errors.Is(err, worker.ErrLost) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `delete the key "`+p.prefix+`/namespace"`) {
					t.Errorf("%s: %v", what, err)
				}
			}
			p.reset(t, "etcdctl del "+p.prefix+"/namespace") // as the text says
			if got, err := registry.Claim(short(t), request("second")); err != nil || got.Floor != 5000 {
				t.Errorf("Claim = %+v, %v; want the floor 5000", got, err)
			}
		})
	}
}
