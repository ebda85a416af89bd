package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// withDisks puts the data directories of the nodes on file systems that can be
// filled, where the machine allows it.
func (c *cluster) withDisks() error {
	var disks []*server.Disk
	for _, n := range c.nodes {
		d, err := server.NewDisk("", 16<<20)
		if errors.Is(err, server.ErrNoMount) {
			if os.Getenv("CI") == "true" {
				return err
			}
			c.cfg.Progress("NOT TESTED: " + err.Error() + ": no full disks")
			return nil
		}
		if err != nil {
			return err
		}
		c.later(d.Close)
		n.relocate(filepath.Join(d.Path(), "data"))
		disks = append(disks, d)
	}
	c.faults = append(c.faults, c.diskFaults(disks)...)
	return nil
}

// diskFaults fill the data directories of nodes; disks has one for each node.
func (c *cluster) diskFaults(disks []*server.Disk) []fault {
	return []fault{{
		name: "disk full", about: "the file system of the node's data directory has no byte left; it is freed.",
		group: ofDisks, targets: c.nodeTargets(), hold: seconds(2, 6),
		begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
			d := disks[t.nodes[0]]
			if err := d.Fill(); err != nil {
				return nil, "", fmt.Errorf("fill the disk of %s: %w", t.name, err)
			}
			return func(context.Context) error { return d.Free() }, "", nil
		},
	}}
}
