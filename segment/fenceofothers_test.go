package segment_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// of makes a node one of a cluster.
func of(id string, cfg segment.Config) segment.Config {
	cfg.ClusterID = func(context.Context) (string, error) { return id, nil }
	return cfg
}

// TestFenceOfAnotherCluster: the address of the cluster fence leads to that of other nodes, which have a tag of the same name at
// lower numbers. A node that merged its marks there would stop their tag.
func TestFenceOfAnotherCluster(t *testing.T) {
	for policy, degrades := range map[string]bool{"refuse": false, "degrade": true} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own, others, al, ids := memory.NewFence(), memory.NewFence(), newAlarms(), newLedger()
				neighbour := node(t, newStore(row(10)), nil, of("two", fenced("n", others, nil)))
				next(t, neighbour, "order")
				synctest.Wait()
				before := sharing(others).end(t, "order")

				s, d := newStore(row(10)), newDisk()
				first := node(t, s, d, of("one", fenced("a", own, nil)))
				ids.add(t, "first", drain(t, first, "order", 200)...)
				closeNode(t, first)

				cfg := of("one", fenced("a", others, al))
				cfg.Degrade = degrades
				led := node(t, s, d, cfg)
				id, err := led.Next(t.Context(), "order")
				if degrades {
					ids.add(t, "without the fence", id)
				}
				if want := leaf.ErrNotReady; !degrades && !errors.Is(err, want) || degrades && err != nil {
					t.Fatalf("beside the fence of others: %d, %v", id, err)
				}
				al.want(t, "fence zk")
				for _, part := range []string{`cluster fence "zk" is another cluster's`, "belongs to cluster two, and this node to cluster one"} {
					if text := al.text("fence", "zk"); !strings.Contains(text, part) {
						t.Errorf("the alarm says %q; want %q", text, part)
					}
				}
				time.Sleep(time.Minute)
				if after := sharing(others).end(t, "order"); after != before {
					t.Errorf("the entry of the other cluster was %d and is %d", before, after)
				}
				drain(t, neighbour, "order", 50)
				closeNode(t, led)

				again := node(t, s, d, of("one", fenced("a", own, al)))
				ids.add(t, "again", drain(t, again, "order", 50)...)
				al.want(t)
			})
		})
	}
}

// TestFenceBeforeTheClusterIsKnown: the database, which has the ID of the cluster, does not answer yet. The node writes nothing to
// the fence, and no alarm speaks of the fence. It goes on when it knows the ID.
func TestFenceBeforeTheClusterIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, al, known := memory.NewFence(), newAlarms(), atomic.Bool{}
		cfg := fenced("a", f, al)
		cfg.ClusterID = func(context.Context) (string, error) {
			if !known.Load() {
				return "", errDown
			}
			return "one", nil
		}
		a := node(t, newStore(row(10)), nil, cfg)
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		al.want(t)
		if text := strings.Join(a.Status().Reasons, "; "); strings.Contains(text, "answer") || !strings.Contains(text, "waits for the ID of this node's cluster") {
			t.Errorf("the state is %q; want that the node waits for the ID", text)
		}
		space, _, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e, ok, err := f.Read(t.Context(), space, probeEntry); ok || err != nil {
			t.Errorf("the node has written %+v to the fence, %v", e, err)
		}
		known.Store(true)
		time.Sleep(10 * time.Second)
		next(t, a, "order")
		if id, err := f.Identify(t.Context(), space, ""); id != "one" || err != nil {
			t.Errorf("the fence has the ID %q, %v; want that of the node", id, err)
		}
	})
}

// TestFenceIsComparedOnceTheClusterIsKnown: a node opens the cluster fence although it has no ID of its own, because the database
// that has the ID is away and the node issues the tags of another one. When it gets the ID, it compares.
func TestFenceIsComparedOnceTheClusterIsKnown(t *testing.T) {
	for id, want := range map[string][]string{"one": nil, "two": {"fence zk"}} {
		synctest.Test(t, func(t *testing.T) {
			al, known := newAlarms(), atomic.Bool{}
			cfg := fenced("a", &named{memory.NewFence(), "one"}, al)
			cfg.ClusterID = func(context.Context) (string, error) {
				if !known.Load() {
					return "", nil
				}
				return id, nil
			}
			a := node(t, newStore(row(10)), nil, cfg)
			drain(t, a, "order", 5)
			time.Sleep(5 * time.Minute)
			drain(t, a, "order", 100)
			al.want(t)
			known.Store(true)
			time.Sleep(2 * time.Minute)
			al.want(t, want...)
		})
	}
}

// TestFenceWithoutAnID: the fence was in use before it had an ID, or its user has no right to one, or the database can have none.
// None of them is another cluster's.
func TestFenceWithoutAnID(t *testing.T) {
	for name, c := range map[string]struct{ fence, own string }{
		"neither has one":     {"", ""},
		"the database has it": {"", "one"},
		"the fence has it":    {"two", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				al := newAlarms()
				next(t, node(t, newStore(row(10)), nil, of(c.own, fenced("a", &named{memory.NewFence(), c.fence}, al))), "order")
				al.want(t)
			})
		})
	}
}

// TestBackupInANewDatabaseUnderAFence: the database and the only node's data directory are lost, as with pods without a volume. A
// backup is loaded into a new database, which has another ID. What the alarm says is done, and the fence still refuses what the
// backup forgot.
func TestBackupInANewDatabaseUnderAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, al, ids := memory.NewFence(), newAlarms(), newLedger()
		first := node(t, newStore(row(10)), nil, of("lost", fenced("a", f, nil)))
		ids.add(t, "first", drain(t, first, "order", 200)...)
		closeNode(t, first)

		restored, d := newStore(row(10)), newDisk()
		led := node(t, restored, d, of("new", fenced("b", f, al)))
		_, err := led.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		closeNode(t, led)
		says := regexp.MustCompile(`if a backup of this cluster was loaded into a new database, or the database lost its ID, (keep|exchange) the fence.*: ` +
			`stop all nodes.*, run in the database: UPDATE leaf_meta SET value = '(\w+)' WHERE name = 'cluster_id', remove the file cluster`).FindStringSubmatch(al.do("fence", "zk"))
		if says == nil {
			t.Fatalf("the alarm does not say what to do after a restore: %s", al.do("fence", "zk"))
		}
		if says[1] != "keep" {
			f = memory.NewFence()
		}
		al = newAlarms()
		again := node(t, restored, d, of(says[2], fenced("b", f, al)))
		if id, err := again.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
			t.Errorf("after what the alarm says: %d, %v; want the regress", id, err)
			ids.add(t, "again", id)
		}
		al.want(t, "regress order")
	})
}

// TestBackupInANewDatabaseUnderAFenceBesideJava: a Java server has taken ranges since the backup, which the fence does not know. What the
// alarm of the fence says is done, and no number repeats.
func TestBackupInANewDatabaseUnderAFenceBesideJava(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, al, ids, s := memory.NewFence(), newAlarms(), newLedger(), newStore(row(10))
		first := node(t, s, nil, of("lost", fenced("a", f, nil)))
		ids.add(t, "first", drain(t, first, "order", 200)...)
		closeNode(t, first)
		backup, err := s.Lookup(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		inTables := int64(0)
		for range 100 {
			inTables = javaTakes(t, s, ids) - 1
		}

		restored, d := newStore(backup), newDisk()
		led := node(t, restored, d, of("new", fenced("b", f, al)))
		_, err = led.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		closeNode(t, led)
		says := regexp.MustCompile(`or the database lost its ID, [^;]*: stop all nodes and Java servers, .*, and start the nodes as docs/OPERATIONS\.md#backup-and-restore-drill says;`)
		drill := says.MatchString(al.do("fence", "zk"))
		again := node(t, restored, d, of("lost", fenced("b", f, nil)))
		if drill {
			if _, err := again.Repair(t.Context(), "order", inTables+3*10); err != nil {
				t.Fatal(err)
			}
		}
		ids.add(t, "again", drain(t, again, "order", 300)...)
	})
}

// named is a cluster fence that says whose it is.
type named struct {
	fence.Cluster
	id string
}

func (n *named) Identify(context.Context, string, string) (string, error) { return n.id, nil }
