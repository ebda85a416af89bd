package config

// Opaque is the section opaque.
type Opaque struct {
	Keys string `key:"keys" hint:"FILE" secretfile:"true" help:"File of keys, as leaf opaque key makes it, with which clients get opaque IDs: format=opaque, opaque-base62 or opaque-crockford. All nodes need the same one. The file is read again when it changes; a key in it may be added and taken away, not changed. Default: clients get numbers only."`
}
