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

// nodeFile is the last list on disk. Nothing but time depends on it: it is not synced,
// and one that cannot be read counts as none.
type nodeFile struct {
	Format int              `json:"format"` // 1
	Nodes  []discovery.Node `json:"nodes"`
}

// readNodes reads the list from a file.
func readNodes(path string) ([]discovery.Node, error) {
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
	return parseNodes(text)
}

func parseNodes(text []byte) ([]discovery.Node, error) {
	var f nodeFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("read the node file: %w", err)
	}
	if f.Format != 1 {
		return nil, fmt.Errorf("read the node file: format %d is not known", f.Format)
	}
	return f.Nodes, nil
}

// writeNodes replaces the file by another one that is complete.
func writeNodes(path string, nodes []discovery.Node) error {
	text, err := json.MarshalIndent(nodeFile{1, nodes}, "", "\t")
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
