package app

import (
	"bytes"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/opaque"
)

// opaqueKeys are what clients get opaque IDs with. Reload exchanges them.
type opaqueKeys struct {
	formats format.Keys  // of all servers
	ring    *opaque.Ring // that formats use, nil: none; of reloadWhenAsked
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

// replace puts a ring into force.
func (k *opaqueKeys) replace(c config.Opaque, ring *opaque.Ring) error {
	if err := k.formats.Replace(ring); err != nil {
		return badKeys(c, err)
	}
	k.ring = ring
	return nil
}

// differs reports whether the file has another content than the one in force.
func (k *opaqueKeys) differs(ring *opaque.Ring) bool {
	return ring != nil && k.ring != nil && !bytes.Equal(ring.Text(), k.ring.Text())
}
