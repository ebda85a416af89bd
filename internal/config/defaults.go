package config

import (
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// Default returns the defaults of all keys. DataDir is empty, because it depends
// on the user; [Load] fills it.
func Default() Config {
	var c Config
	root := reflect.ValueOf(&c).Elem()
	for _, k := range Keys() {
		if k.Default == "" {
			continue
		}
		v, err := k.parse(k.Default)
		if err != nil {
			panic("app: tag default of Config: " + err.Error()) // a test reads every tag
		}
		root.FieldByIndex(k.index).Set(v)
	}
	return c
}

// defaultDataDir follows the conventions of the operating system for data that a
// program keeps for its user.
func defaultDataDir(environ []string) (string, error) {
	env := func(name string) string {
		for _, entry := range environ {
			if n, v, _ := strings.Cut(entry, "="); n == name && filepath.IsAbs(v) {
				return v // the XDG specification ignores a relative path
			}
		}
		return ""
	}
	var base string
	switch runtime.GOOS {
	case "windows":
		base = env("LocalAppData")
	case "darwin":
		if home := env("HOME"); home != "" {
			base = filepath.Join(home, "Library", "Application Support")
		}
	default:
		if base = env("XDG_DATA_HOME"); base == "" {
			if home := env("HOME"); home != "" {
				base = filepath.Join(home, ".local", "share")
			}
		}
	}
	if base == "" {
		return "", &Error{Key: "data-dir", Limit: "has no default here, because neither HOME nor XDG_DATA_HOME is set; set --data-dir"}
	}
	return filepath.Join(base, "leaf"), nil
}
