package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// setFromFile sets the key whose value the file of k holds.
func (l *Loaded) setFromFile(k Key, s setting, beside []setting) error {
	fail := func(limit string) error {
		return &Error{Key: k.Name, Value: strings.Join(s.values, ListSeparator), Source: s.source, Limit: limit}
	}
	if len(s.values) != 1 {
		return fail("must be given once")
	}
	if slices.ContainsFunc(beside, func(other setting) bool { return other.key == k.content }) {
		return fail("must not be set together with " + k.content)
	}
	path := s.values[0]
	values, info, err := readSecret(path)
	if err != nil {
		return fail(err.Error())
	}
	l.seen[path] = info
	if err := l.set(setting{key: k.content, values: values, source: s.source}, nil); err != nil {
		return err
	}
	l.files[k.content] = path
	return nil
}

// ReadSecret returns the lines of a file that are not empty. There is at least one.
func ReadSecret(path string) ([]string, error) {
	lines, _, err := readSecret(path)
	return lines, err
}

// readSecret is ReadSecret, with what the file was before it was read.
func readSecret(path string) (lines []string, info fs.FileInfo, err error) {
	data, info, err := readBounded(path)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, nil, errors.New("must hold a value, and is empty")
	}
	return lines, info, nil
}

// ArgumentWarnings returns a warning for each flag with a secret in its value.
func ArgumentWarnings(flags map[string][]string) (warnings []string) {
	for _, k := range Keys() {
		if k.Secret && slices.ContainsFunc(flags[k.Name], func(value string) bool { return k.Redact(value) != value }) {
			warnings = append(warnings, ArgumentWarning(k.Flag(), k.Env()))
		}
	}
	return warnings
}

// ArgumentWarning says that the value of a flag holds a secret. env is the variable that takes the
// same value, "" if there is none.
func ArgumentWarning(flag, env string) string {
	if env != "" {
		env = ", or the variable " + env
	}
	return fmt.Sprintf("--%s has a secret, and other users of this machine may read the arguments of a process; use --%[1]s-file FILE%s", flag, env)
}

// exposed returns a warning for each file that holds secrets and that other users may read.
func (l *Loaded) exposed() []string {
	paths := map[string]bool{}
	for _, path := range l.files {
		paths[path] = true
	}
	if l.File != "" && l.secretsInFile() {
		paths[l.File] = true
	}
	root := reflect.ValueOf(l.Config)
	for _, k := range Keys() {
		if k.SecretFile && k.content == "" {
			if path := root.FieldByIndex(k.index).String(); path != "" {
				paths[path] = true
			}
		}
	}
	return FileWarnings(slices.Collect(maps.Keys(paths))...)
}

// FileWarnings returns a warning for each of the files, which hold secrets, that other users may
// read.
func FileWarnings(paths ...string) (warnings []string) {
	if runtime.GOOS == "windows" { // which has no such modes
		return nil
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			warnings = append(warnings, fmt.Sprintf("%s holds secrets, and other users of this machine may read it (mode %#o); run: chmod 600 %[1]s", path, info.Mode().Perm()))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// secretsInFile reports whether the configuration file itself holds a secret.
func (l *Loaded) secretsInFile() bool {
	root := reflect.ValueOf(l.Config)
	for _, k := range Keys() {
		if !k.Secret || !strings.HasPrefix(l.sources[k.Name], filepath.Base(l.File)+":") || l.files[k.Name] != "" {
			continue
		}
		for value := range strings.SplitSeq(k.format(root.FieldByIndex(k.index)), ListSeparator) {
			if k.Redact(value) != value {
				return true
			}
		}
	}
	return false
}
