package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf/discovery"
)

// maxNodeFile bounds what is read: a list of ten thousand nodes is smaller.
const maxNodeFile = 4 << 20

// nodeFile is the last list on disk. It is not synced, and one that cannot be read, or
// that another cluster's client wrote, counts as none: it is older than anything that the
// Resolver says, so it never decides which cluster the client uses.
type nodeFile struct {
	Format  int              `json:"format"` // nodeFormat
	Cluster string           `json:"cluster"`
	Nodes   []discovery.Node `json:"nodes"`
}

const nodeFormat = 2 // format 1 did not say whose nodes it has

// readNodes reads the list of a cluster from a file.
func readNodes(path, cluster string) ([]discovery.Node, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxNodeFile {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), maxNodeFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseNodes(text, cluster)
}

func parseNodes(text []byte, cluster string) ([]discovery.Node, error) {
	var f nodeFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("read the node file: %w", err)
	}
	if f.Format != nodeFormat {
		return nil, fmt.Errorf("read the node file: format %d is not %d", f.Format, nodeFormat)
	}
	if f.Cluster != cluster {
		return nil, fmt.Errorf("read the node file: %w: the file is of cluster %q, and this client uses %q", ErrOtherCluster, f.Cluster, cluster)
	}
	return f.Nodes, nil
}

// writeNodes replaces the file by another one that is complete.
func writeNodes(path, cluster string, nodes []discovery.Node) error {
	text, err := json.MarshalIndent(nodeFile{nodeFormat, cluster, nodes}, "", "\t")
	if err != nil {
		return err
	}
	// A name of its own: several clients may share the file.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
