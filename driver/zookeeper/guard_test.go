package zookeeper_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestGuardIsGone: when the node that every write expects was deleted without its
// namespace, an error says so, and what to delete. A claim does not try until its time is up.
func TestGuardIsGone(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	folders := map[string]string{"zookeeper": "/leaf_namespace", "zookeeper-recycle": "/leaf_pool/namespace"}
	java := `{"ip":"10.0.0.9","port":"80","timestamp":` + strconv.FormatInt(now, 10) + `}`
	for _, c := range []struct {
		name, kind string
		also       func(t *testing.T, p place)
	}{
		{"zookeeper", "zookeeper", nil},
		{"zookeeper, forever too", "zookeeper", func(t *testing.T, p place) { p.remove(t, p.root()+"/forever") }},
		{"zookeeper after zookeeper-recycle", "zookeeper", func(t *testing.T, p place) {
			p.create(t, p.root()+"/leaf_pool/bounds/5", `{"format":1,"bound":`+strconv.FormatInt(now, 10)+`}`, 0)
		}},
		{"zookeeper-recycle", "zookeeper-recycle", nil},
		{"zookeeper-recycle after zookeeper", "zookeeper-recycle", func(t *testing.T, p place) {
			p.create(t, p.root()+"/forever/10.0.0.9:80-0000000005", java, 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			r := openKind[c.kind](t, p)
			declare(t, r)
			folder := p.root() + folders[c.kind]
			for _, guard := range p.children(t, folder) {
				p.remove(t, folder+"/"+guard)
			}
			if c.also != nil {
				c.also(t, p)
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

// TestFolderIsGone: a folder was deleted without the namespace. A claim makes it again, and does not try until its time is up.
func TestFolderIsGone(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for kind, folders := range map[string][]string{
		"zookeeper":         {"/leaf_owner", "/leaf_temporary"},
		"zookeeper-recycle": {"/leaf_pool/claims", "/leaf_pool/bounds", "/leaf_pool/peers"},
	} {
		for _, folder := range folders {
			t.Run(kind+folder, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, ns)
				r := openKind[kind](t, p)
				declare(t, r)
				p.remove(t, p.root()+folder)
				claim(t, r, request(addr))
			})
		}
	}
}
