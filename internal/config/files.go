package config

import (
	"io/fs"
	"os"
	"reflect"

	"github.com/leaf-idgen/leaf/driver/sqldb"
)

// Files returns the files that a node reads with its configuration, and what each was before it
// was read, nil for one that could not be looked at: the configuration file, those of the keys
// that end in -file, certificates, and keys. The file of auth.named is not one of them, because a
// node looks at it by itself. Call it before the certificates and keys are read.
func (l *Loaded) Files() map[string]fs.FileInfo {
	files := map[string]fs.FileInfo{}
	add := func(paths ...string) {
		for _, path := range paths {
			if path == "" {
				continue
			}
			info, read := l.seen[path]
			if !read {
				info, _ = os.Stat(path) // nil after an error
			}
			files[path] = info
		}
	}
	for path := range l.seen {
		add(path)
	}
	root := reflect.ValueOf(l.Config)
	for _, k := range Keys() {
		if k.Hint == fileHint && k.content == "" && !k.Command {
			add(root.FieldByIndex(k.index).String())
		}
	}
	for _, store := range l.Stores {
		add(sqldb.Files(CutStoreName(store).URL)...)
	}
	if l.Snowflake.Registry == RegistrySQL {
		for _, address := range l.Snowflake.Addresses {
			add(sqldb.Files(address)...)
		}
	}
	return files
}
