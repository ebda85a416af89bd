package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lostFile is a file that vanished under running nodes, and when.
type lostFile struct {
	name            string
	nodes           []int
	stopped, healed time.Time // no node of them issues in between
	took            time.Duration
}

// The files that the numbers of a node rest on. Without those of refused the node does
// not know which ranges it took.
var (
	nodeFiles = []string{"fence", "fence-end", "lock", "node.json"}
	refused   = []string{"fence", "fence-end", "node.json"}
)

// fileDeleted begins the names of the faults.
const fileDeleted = "file deleted: "

// fileFaults let files of data directories vanish, one of them at a time.
func (c *cluster) fileFaults(names ...string) []fault {
	var all []fault
	for _, name := range names {
		all = append(all, c.fileFault(name, c.nodeTargets(), func(n *node) string { return filepath.Join(n.dir, name) }))
	}
	return all
}

// sharedFault lets a file vanish that all nodes use.
func (c *cluster) sharedFault(path string) fault {
	return c.fileFault(filepath.Base(path), []target{c.everyNode("all nodes")}, func(*node) string { return path })
}

// fileFault deletes a file, or moves it away, and does what the texts of the nodes say.
func (c *cluster) fileFault(name string, targets []target, path func(*node) string) fault {
	extra := 3 * time.Second
	if slices.Contains(refused, name) {
		extra = 30 * time.Second // each repair asks all nodes and listens for those that are not on the list
	}
	return fault{
		name:  fileDeleted + name,
		about: "the file is deleted or moved away while the node runs; each process that uses it is stopped, a file that was moved is put back, the node is started, and what its texts say is typed.",
		group: ofNodes, targets: targets, hold: seconds(2, 5), alone: true, extra: extra,
		begin: func(ctx context.Context, t target, chance *rand.Rand) (func(context.Context) error, string, error) {
			file, moved, note := path(c.nodes[t.nodes[0]]), chance.IntN(3) == 0, "deleted"
			lose := func() error { return os.Remove(file) }
			if moved {
				note, lose = "moved away", func() error { return os.Rename(file, file+".away") }
			}
			if err := lose(); err != nil {
				return nil, "", err
			}
			lost := lostFile{name: name, nodes: t.nodes}
			gone := time.Now()
			err := poll(ctx, 10*stopWithin, func(ctx context.Context) error { return c.stoppedFor(ctx, filepath.Base(file), t.nodes) })
			if err != nil {
				c.broken = append(c.broken, fmt.Sprintf("%s was %s: %v", file, note, err))
			}
			lost.stopped = time.Now()
			lost.took = lost.stopped.Sub(gone)
			return func(ctx context.Context) error {
				lost.healed = time.Now()
				if err == nil {
					c.lost = append(c.lost, lost)
				}
				for _, i := range t.nodes {
					if err := c.nodes[i].stop(); err != nil {
						return err
					}
				}
				if moved {
					if err := os.Rename(file+".away", file); err != nil {
						return err
					}
				}
				for _, i := range t.nodes {
					if err := c.restart(ctx, c.nodes[i], !moved && slices.Contains(refused, name)); err != nil {
						return err
					}
				}
				return nil
			}, note, nil
		},
	}
}

// stoppedFor returns why the nodes do not all refuse and say that it is for want of the
// file.
func (c *cluster) stoppedFor(ctx context.Context, file string, nodes []int) error {
	for _, i := range nodes {
		n := c.nodes[i]
		code, err := get(ctx, n.addr, "/api/segment/get/stock")
		if err != nil {
			return err
		}
		if code == http.StatusOK {
			return fmt.Errorf("node %s still issues", n.name)
		}
		said, _ := n.said(0)
		if last := said[strings.LastIndex(said, `msg="data directory"`)+1:]; !strings.Contains(last, "code=file") || !strings.Contains(last, file+" was deleted, moved or replaced") && !strings.Contains(last, "was deleted or replaced: ") {
			return fmt.Errorf("node %s does not say in its log that it lost file %s", n.name, file)
		}
	}
	return nil
}

// without reports whether a node had lost a file at that time, or was not yet serving
// again since: one that makes its fence anew latches every tag. A tag in strict order is latched everywhere then.
func (r *run) without(s stream, number int, at time.Duration) bool {
	e := r.at(at)
	return e != nil && strings.HasPrefix(e.Fault, fileDeleted) && (s.strict || slices.Contains(e.Nodes, number))
}

// judgeFiles checks that a node which lost a file stopped at once, in all modes and over
// all protocols, and did not resume by itself.
func (r *run) judgeFiles(samples [][]sample) {
	if len(r.cluster.lost) == 0 {
		return
	}
	var worst time.Duration
	var issued []string
	const under = 500 * time.Millisecond // before the stop: a reply may come from the next process
	for _, l := range r.cluster.lost {
		worst = max(worst, l.took)
		from, until := l.stopped.Sub(r.begin), l.healed.Sub(r.begin)-under
		for i, c := range r.clients {
			if c.stream.strict || !slices.Contains(l.nodes, slices.Index(r.cluster.nodes, c.node)) {
				continue // the answer may be another node's
			}
			for _, s := range samples[i] {
				if s.due > from && s.due < until && !failed(s.outcome) && s.outcome != unsent {
					issued = append(issued, fmt.Sprintf("%s at node %s after %.2f s, without %s", c.stream.name, c.node.name, s.due.Seconds(), l.name))
				}
			}
		}
	}
	busy := r.report.Machine.Starved(r.report.Ran)
	r.report.checkUnless(busy, worst <= stopWithin, "a node that loses a file issues nothing after %v and says why: the slowest of %d took %v", stopWithin, len(r.cluster.lost), worst.Round(time.Millisecond))
	r.report.check(len(issued) == 0, "and nothing before its restart: %d requests were served%s", len(issued), strings.Join(append([]string{""}, issued[:min(len(issued), 5)]...), "; "))
}
