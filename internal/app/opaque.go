package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/opaque"
)

// opaqueKeys are what clients get opaque IDs with. Reload exchanges them.
type opaqueKeys struct {
	formats format.Formats // of all servers
	ring    *opaque.Ring   // that formats use, nil: none; of reloadWhenAsked

	shared bool          // the nodes of the database agree on the key that encodes
	wake   chan struct{} // holds one: another ring is in force
}

// readRing reads the file of opaque.keys, nil without one.
func readRing(c config.Opaque) (*opaque.Ring, error) {
	if c.Keys == "" {
		return nil, nil //nolint:nilnil // a node without opaque IDs is a valid configuration
	}
	ring, err := opaque.ReadRing(c.Keys)
	if err != nil {
		return nil, badKeys(c, err)
	}
	return ring, nil
}

func badKeys(c config.Opaque, err error) error {
	return &config.Error{Key: format.KeysKey, Value: c.Keys, Limit: "must be a file of keys for opaque IDs: " + err.Error()}
}

// opaqueFile records in the data directory which keys the node has had, as digests: it holds no key.
const opaqueFile = "opaque.json"

// recall reads what the node had before its start. A file that cannot be read refuses the start: a
// key that is not known could be another one of its version.
func (k *opaqueKeys) recall(dir *datadir.Dir) error {
	content, err := dir.ReadFile(opaqueFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var seen format.Seen
	if err == nil {
		err = json.Unmarshal(content, &seen)
	}
	if err != nil {
		return fmt.Errorf("%w: file %s of the data directory cannot be read: %w; it records which keys of opaque IDs this node has had. If this node has the same file of keys as all other nodes, remove %[2]s and start it again", leaf.ErrConflict, opaqueFile, err)
	}
	k.formats.Recall(seen)
	return nil
}

// replace puts a ring into force, and keeps what the next start must know of it. Where nodes share
// a database, compare is asked first whether the key is theirs; without an answer the ring encodes
// nothing before agreeOnKeys has one.
func (k *opaqueKeys) replace(c config.Opaque, ring *opaque.Ring, dir *datadir.Dir, compare func(*opaque.Ring) error) error {
	seen, err := k.check(c, ring)
	if err != nil {
		return err
	}
	var held error
	if k.shared && ring != nil {
		switch err := compare(ring); {
		case errors.Is(err, errOtherKey):
			return badKeys(c, err)
		case err != nil:
			held = errNotCompared
		}
	}
	before, _ := k.formats.After(nil) // without a ring it does not fail
	if !maps.Equal(seen.Keys, before.Keys) {
		content, err := json.Marshal(seen)
		if err == nil {
			err = dir.Replace(opaqueFile, append(content, '\n'))
		}
		if err != nil {
			return fmt.Errorf("write file %s of the data directory: %w", opaqueFile, err)
		}
	}
	if err := k.formats.Replace(ring, held); err != nil {
		return badKeys(c, err)
	}
	k.ring = ring
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return nil
}

// check returns the keys that the node will have had with a ring. It refuses one that cannot follow
// those that the node had.
func (k *opaqueKeys) check(c config.Opaque, ring *opaque.Ring) (format.Seen, error) {
	seen, err := k.formats.After(ring)
	if err != nil {
		return seen, badKeys(c, fmt.Errorf("%w. If no opaque ID of the keys before is in use, stop the node and remove file %s of its data directory", err, opaqueFile))
	}
	return seen, nil
}

// differs reports whether the file has another content than the one in force.
func (k *opaqueKeys) differs(ring *opaque.Ring) bool {
	return ring != nil && k.ring != nil && !bytes.Equal(ring.Text(), k.ring.Text())
}
