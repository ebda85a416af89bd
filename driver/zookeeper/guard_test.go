package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestGuardIsGone: when the node that every write expects was deleted without its
// namespace, an error says so, and what to delete. A claim does not try until its time is up.
func TestGuardIsGone(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for kind, folder := range map[string]string{"zookeeper": "/leaf_namespace", "zookeeper-recycle": "/leaf_pool/namespace"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			r := openKind[kind](t, p)
			declare(t, r)
			folder := p.root() + folder
			for _, guard := range p.children(t, folder) {
				p.remove(t, folder+"/"+guard)
			}
			_, err := r.Claim(ctx(t), request(addr))
			if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "delete node "+folder+", ") {
				t.Errorf("Claim: %v", err)
			}
			p.remove(t, folder) // as the text says
			if got := claim(t, r, request(addr)); got.Floor != now+quiet {
				t.Errorf("Claim = %+v; want the floor %d", got, now+quiet)
			}
		})
	}
}
