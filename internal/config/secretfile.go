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

	"github.com/leaf-idgen/leaf/internal/ownership"
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
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		user, group := ownership.Of(info)
		if text := fileWarning(path, info.Mode(), user, group, os.Geteuid()); text != "" {
			warnings = append(warnings, text)
		}
	}
	slices.Sort(warnings)
	return warnings
}

// fileWarning is the warning for one file, "" if it needs none: user and group own it, and reader is
// the user of this process. What is open to a group only is a warning where the group can have no
// purpose: else it is how a node reads a file of root, as the Secret of a pod and a credential of
// systemd. A bare chmod 600 is for the owner: it would take the file from a node of another user.
// Root may be asking for such a node.
func fileWarning(path string, mode fs.FileMode, user, group, reader int) string {
	const byGroup, byOthers = 0o070, 0o007
	open := mode.Perm() & (byGroup | byOthers)
	if user != reader || user == 0 && group != 0 {
		open &= byOthers
	}
	if open == 0 {
		return ""
	}
	do := "chmod 600 " + path
	if user != reader || user == 0 {
		do = fmt.Sprintf("chown USER %s && %s, where USER runs the program that reads it", path, do)
	}
	return fmt.Sprintf("%s holds secrets, and other users of this machine may read it (mode %#o); run: %s", path, mode.Perm(), do)
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
