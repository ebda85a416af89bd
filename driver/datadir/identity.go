package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// identity is the content of node.json.
type identity struct {
	Node string `json:"node"`

	// Files were written in this folder and must be there. Their names are recorded
	// before the call that wrote them returns.
	Files []string `json:"files,omitempty"`
}

// keeps reports whether a file, once it was written, must be there at every later
// start: a node that took its absence for a first start would forget which numbers it
// has issued. The names are those of package segment; a test compares them.
func keeps(name string) bool { return name == "fence" || name == "fence-end" }

// MissingError says that a file of the folder is gone. It does not match
// fs.ErrNotExist: the file was there once.
type MissingError struct {
	Path string // of the folder
	Name string // of the file
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("file %s of data directory %s is gone; %s records that it was written", e.Name, e.Path, nodeName)
}

func (d *Dir) loadIdentity() error {
	content, err := d.ReadFile(nodeName)
	if errors.Is(err, fs.ErrNotExist) {
		return d.createIdentity()
	}
	if err != nil {
		return err
	}
	var id identity
	if err := json.Unmarshal(content, &id); err != nil {
		return fmt.Errorf("%s: %w", nodeName, err)
	}
	if len(id.Node) != 32 {
		return fmt.Errorf("%s: node=%q: must have 32 hexadecimal digits", nodeName, id.Node)
	}
	d.nodeID = id.Node
	for _, name := range id.Files {
		d.kept[name] = true
	}
	return nil
}

func (d *Dir) createIdentity() error {
	var raw [16]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	d.nodeID = hex.EncodeToString(raw[:])
	return d.saveIdentity(nil)
}

func (d *Dir) saveIdentity(files []string) error {
	content, err := json.Marshal(identity{Node: d.nodeID, Files: files})
	if err != nil {
		return err
	}
	return d.Replace(nodeName, append(content, '\n'))
}

// keep records durably that a file exists, once.
func (d *Dir) keep(name string) error {
	if !keeps(name) {
		return nil
	}
	d.saving <- struct{}{} // else an older list could take the place of a newer one
	defer func() { <-d.saving }()
	d.mu.Lock()
	known := d.kept[name]
	names := append(slices.Collect(maps.Keys(d.kept)), name)
	d.mu.Unlock()
	if known {
		return nil
	}
	slices.Sort(names)
	if err := d.saveIdentity(names); err != nil {
		return err
	}
	d.mu.Lock()
	d.kept[name] = true
	d.mu.Unlock()
	return nil
}
