package zookeeper_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// TestOriginalNamespaceIsDeleted: docs/GUARANTEES.md says to delete the namespace of a
// registry that was restored from a backup, whose T is too low: all numbers then wait as
// after a wipe, however old forever is, also if leaf worker init runs before the nodes.
func TestOriginalNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, tt := range []struct {
		name    string
		address string
	}{
		{"the number of an address", addr},
		{"a fresh number", "10.0.0.2:8080"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			declare(t, p.original(t))
			backup := claim(t, p.original(t), request(addr))
			p.remove(t, p.root()+"/leaf_namespace")
			p.remove(t, p.root()+"/leaf_temporary/"+addr) // the process is gone
			declare(t, p.original(t))
			_, forever, err := p.zk.Get(p.root() + "/forever")
			if err != nil {
				t.Fatal(err)
			}
			req := request(tt.address)
			req.Now = forever.Ctime + 2*briefQuiet // the backup is old, and so is what is in it
			req.Bound, req.Quiet = req.Now+horizon, req.Now+briefQuiet
			got := claim(t, p.original(t), req)
			if got.Floor != req.Quiet {
				t.Errorf("claim = %+v after %+v; want the floor %d", got, backup, req.Quiet)
			}
		})
	}
}

// TestOriginalPreviousNamespace: a node whose file names another namespace knows that the
// one before is gone, and waits although the present one was declared new (rule U).
func TestOriginalPreviousNamespace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, incarnation string // of the node's file; "": the file is older than that field
		lost              int64  // the end of the quiet time of the loss, if this process saw it
		floor             int64
	}{
		{"the file names another one", "before", 0, now + quiet},
		{"the file names none", "", 0, 0},
		{"this process saw the loss", "", now + quiet/2, now + quiet/2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := declared(t)
			req := request(addr)
			req.Previous = &worker.Previous{Number: 7, Nonce: "mine", Inner: now, Incarnation: tt.incarnation, Quiet: tt.lost}
			if got := claim(t, p.original(t), req); got.Floor != tt.floor {
				t.Errorf("claim = %+v; want the floor %d", got, tt.floor)
			}
		})
	}
}

// TestOriginalTellsOfLoss: a process that knows that the namespace of its claim is gone
// makes the fresh numbers of all claimers wait, because the numbers of that namespace may
// have other owners who do not know of it yet (rule U).
func TestOriginalTellsOfLoss(t *testing.T) {
	t.Parallel()
	const quiet = briefQuiet
	ns := server.ZooKeeper(t)
	for _, tt := range []struct {
		name  string
		place func(t *testing.T, p place) (now int64)
		quiet int64 // of Previous, after now: 0 for one that its process has not seen
	}{
		{"a namespace that was declared new after a wipe", func(t *testing.T, p place) int64 {
			t.Helper()
			declare(t, p.original(t))
			return now
		}, quiet / 2},
		{"a backup of before the first Go node", backupOfJava, quiet / 2},
		{"such a backup, and a file", backupOfJava, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			at := tt.place(t, p)
			request := func(address string) worker.Request {
				req := request(address)
				req.Now, req.Bound, req.Quiet = at, at+horizon, at+quiet
				return req
			}
			knows := request(addr)
			knows.Previous = &worker.Previous{Number: 7, Nonce: "mine", Inner: at, Incarnation: "before"}
			if tt.quiet > 0 {
				knows.Previous.Quiet = at + tt.quiet
			}
			knows.QuietLater = func() int64 { return at + quiet + 1 } // it sees the loss later than its claim began
			claim(t, p.original(t), knows)
			if got := claim(t, p.original(t), request("10.0.0.2:8080")); got.Floor != knows.QuietLater() {
				t.Errorf("claim of another node = %+v; want the floor %d", got, knows.QuietLater())
			}
		})
	}
}

// TestOriginalGoesBack: the servers come back with an older copy of their data, in which the record of an address
// has a lower T. The process that finds this tells the registry: a number that was given since then may be given again, and
// its holder may be cut off.
func TestOriginalGoesBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	o := p.original(t)
	declare(t, o)
	first := request(addr)
	first.Bound = now + 1000
	own := claim(t, o, first)
	path, child := p.root()+"/leaf_owner/"+addr, p.root()+"/forever/"+addr+"-"+fmt.Sprintf("%010d", own.Number)
	olderOwner, olderChild := p.get(t, path), p.get(t, child)
	had, err := o.Renew(ctx(t), own, own.Bound+5000)
	if err != nil {
		t.Fatal(err)
	}
	knows := request(addr)
	knows.Bound = had.Bound
	knows.Previous = &worker.Previous{Number: had.Number, Nonce: had.Nonce, Inner: now, Bound: had.Bound, Incarnation: had.Incarnation, Quiet: now + quiet}
	if got := claim(t, o, knows); got.Floor >= now+quiet {
		t.Errorf("Claim with a record that was not set back = %+v", got)
	}
	p.set(t, path, withNonce(olderOwner, "of the process before"))
	p.set(t, child, olderChild)
	knows.Nonce = "another"
	knows.QuietLater = func() int64 { return now + quiet + 1 }
	if got := claim(t, o, knows); got.Floor != knows.QuietLater() {
		t.Errorf("Claim with a record that was set back = %+v; want the floor %d", got, knows.QuietLater())
	}
	if got := claim(t, p.original(t), request("10.0.0.2:8080")); got.Floor != knows.QuietLater() {
		t.Errorf("claim of another node = %+v; want the floor %d", got, knows.QuietLater())
	}
}

// backupOfJava makes a path on which only a Java server was, and returns a moment at which
// the path is old, and the server still counts as running.
func backupOfJava(t *testing.T, p place) (now int64) {
	t.Helper()
	p.java(t, "10.0.0.9:8080", 1)
	_, forever, err := p.zk.Get(p.root() + "/forever")
	if err != nil {
		t.Fatal(err)
	}
	return forever.Ctime + 2*briefQuiet
}

// TestOriginalNamespaceIsCreatedLate: the namespace was deleted after a backup was restored. A claim that creates a new one is
// minutes on its way, because its machine was suspended. Meanwhile another node creates it, claims and issues, and another backup
// is restored, with the same deletion after it. The wait counts from when the new namespace was seen (rule D), also if the claimer
// has crashed by then.
func TestOriginalNamespaceIsCreatedLate(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, crashes := range []bool{false, true} {
		t.Run(fmt.Sprintf("the claimer crashes: %t", crashes), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			declare(t, p.original(t))
			claim(t, p.original(t), request(addr))
			p.remove(t, p.root()+"/leaf_namespace")
			const later = 60_000
			late, asked := request("10.0.0.2:8080"), 0
			dying, crash := context.WithCancel(t.Context())
			defer crash()
			late.QuietLater = func() int64 {
				if asked++; asked == 1 {
					claim(t, p.original(t), request("10.0.0.3:8080"))
					p.remove(t, p.root()+"/leaf_namespace")
					return late.Quiet
				}
				if crashes {
					crash()
				}
				return late.Quiet + later
			}
			got, err := p.original(t).Claim(dying, late)
			if crashes {
				if err == nil {
					t.Fatalf("claim = %+v; want the error of a process that is gone", got)
				}
				next := request("10.0.0.4:8080")
				next.Quiet += later
				got, err = p.original(t).Claim(t.Context(), next)
			}
			if err != nil || got.Floor != late.Quiet+later {
				t.Errorf("claim = %+v, %v; want the floor %d", got, err, late.Quiet+later)
			}
		})
	}
}
