package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// maxConfigFile bounds the configuration file in bytes.
const maxConfigFile = 1 << 20

// Input is where a configuration comes from. Precedence: Flags, then Environ,
// then the file, then the defaults; a list is replaced as a whole.
type Input struct {
	Flags   map[string][]string // raw values by key name, as given on the command line
	Environ []string            // like os.Environ
	File    string              // path of a .yaml, .yml or .properties file; "" for $LEAF_CONFIG or none

	// Command says that no node starts with the configuration, so it need not say which
	// one this is: a worker ID that only the flags of leaf serve give may be missing.
	Command bool
}

// Loaded is a valid configuration and where it came from.
type Loaded struct {
	Config
	Name  string   // leaf.name of a .properties file; informative
	File  string   // the configuration file, "" for none
	Notes []string // what was ignored or translated, for the log

	// Warnings say which secrets other users of the machine may read.
	Warnings []string

	sources map[string]string      // by key name; missing: the default
	files   map[string]string      // by key name: the file that its value was read from
	seen    map[string]fs.FileInfo // by path: each file that was read, as it was before
	legacy  legacyConfig           // what a .properties file means
}

// setting is one key with raw values and its origin.
type setting struct {
	key    string
	values []string
	source string
}

// Load reads, merges and validates a configuration. The error joins a
// [Error] for each thing that is wrong: an unknown key, a value outside its
// limits, a duplicate key, an impossible combination.
func Load(in Input) (*Loaded, error) {
	env, file, errs := environSettings(in.Environ)
	if in.File != "" {
		file = in.File
	}
	l := &Loaded{Config: Default(), File: file, sources: map[string]string{}, files: map[string]string{}, seen: map[string]fs.FileInfo{}}

	fromFile, fileErr := l.readFile(file)
	if fileErr != nil {
		errs = append([]error{fileErr}, errs...)
	}
	for _, source := range [][]setting{fromFile, env, flagSettings(in.Flags)} {
		for _, s := range source {
			if err := l.set(s, source); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if !in.Command {
		errs = append(errs, l.empty(in.Environ)...)
		if err := otherFolder(fromFile, env, in.Flags); err != nil {
			errs = append(errs, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.legacy.needs)) {
		if !l.IsSet(key) && (l.Snowflake.Enable || key != "snowflake.name") {
			errs = append(errs, l.legacy.needs[key])
		}
	}
	if l.legacy.snowflake != nil && l.Snowflake.Enable {
		errs = append(errs, l.legacy.snowflake)
	}
	if l.DataDir == "" {
		dir, err := defaultDataDir(in.Environ)
		if err != nil && (!in.Command || l.Endpoint == "") {
			return nil, errors.Join(append(errs, err)...)
		}
		l.DataDir = dir
	}
	// A value that could not be set has left the default in its place, so what
	// Validate finds is about other keys.
	if err := l.validate(!in.Command); err != nil {
		errs = append(errs, l.withSources(err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	l.Warnings = append(ArgumentWarnings(in.Flags), l.exposed()...)
	return l, nil
}

// LoadSome is Load for some keys: no other is read, and none is compared with another. It is for
// commands that ask nodes as clients do, and so have no use for the configuration of a node.
func LoadSome(in Input, keys ...string) (*Loaded, error) {
	env, file, _ := environSettings(in.Environ)
	if in.File != "" {
		file = in.File
	}
	l := &Loaded{Config: Default(), File: file, sources: map[string]string{}, files: map[string]string{}, seen: map[string]fs.FileInfo{}}
	fromFile, err := l.readFile(file)
	errs := []error{err}
	for _, source := range [][]setting{fromFile, env, flagSettings(in.Flags)} {
		for _, s := range source {
			if slices.Contains(keys, s.key) {
				errs = append(errs, l.set(s, source))
			}
		}
	}
	if l.DataDir == "" && slices.Contains(keys, "data-dir") && errors.Join(errs...) == nil { // else one that could not be read may be set
		l.DataDir, err = defaultDataDir(in.Environ)
		errs = append(errs, err)
	}
	return l, errors.Join(errs...)
}

func (l *Loaded) readFile(path string) ([]setting, error) {
	if path == "" {
		return nil, nil
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext != ".yaml" && ext != ".yml" && ext != ".properties" {
		return nil, &Error{Key: "config", Value: path, Limit: "must end in .yaml, .yml or .properties"}
	}
	data, info, err := readBounded(path)
	if err != nil {
		return nil, &Error{Key: "config", Value: path, Limit: err.Error()}
	}
	l.seen[path] = info
	if ext != ".properties" {
		return yamlSettings(path, data)
	}
	legacy, err := translateProperties(path, data)
	l.Name, l.Notes, l.legacy = legacy.name, legacy.notes, legacy
	return legacy.settings, err
}

// readBounded reads a file, and returns what it was before it was read.
func readBounded(path string) (data []byte, info fs.FileInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxConfigFile {
		return nil, nil, fmt.Errorf("must not have more than %d bytes", maxConfigFile)
	}
	return data, info, nil
}

func flagSettings(flags map[string][]string) []setting {
	var settings []setting
	for _, k := range Keys() {
		if values, given := flags[k.Name]; given {
			settings = append(settings, setting{key: k.Name, values: values, source: "--" + k.Flag()})
		}
	}
	return settings
}

// set parses s into its field. beside are all settings of the same source. Sources are applied in rising precedence, so the
// last one wins; that every source is parsed means that a bad value is reported
// even if a better source overrides it.
func (l *Loaded) set(s setting, beside []setting) error {
	k, known := keyByName(s.key)
	if !known {
		return fmt.Errorf("app: setting for unknown key %q", s.key)
	}
	delete(l.files, k.Name)
	if k.content != "" {
		return l.setFromFile(k, s, beside)
	}
	if !k.List && len(s.values) != 1 {
		return &Error{Key: k.Name, Value: strings.Join(redactAll(k, s.values), ListSeparator), Source: s.source, Limit: "must be given once"}
	}
	values := make([]reflect.Value, len(s.values))
	for i, text := range s.values {
		v, err := k.parse(text)
		if err == nil && !k.List {
			err = k.check(v)
		}
		if err != nil {
			return withSource(err, s.source)
		}
		values[i] = v
	}
	field := reflect.ValueOf(&l.Config).Elem().FieldByIndex(k.index)
	if k.List {
		field.Set(reflect.Append(reflect.Zero(k.typ), values...))
	} else {
		field.Set(values[0])
	}
	l.sources[k.Name] = s.source
	return nil
}

func withSource(err error, source string) error {
	if ce, ok := errors.AsType[*Error](err); ok {
		ce.Source = source
	}
	return err
}

// withSources adds to every error of Validate where its key was set.
func (l *Loaded) withSources(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	for _, e := range joined.Unwrap() {
		if ce, ok := errors.AsType[*Error](e); ok {
			ce.Source = l.sources[ce.Key]
		}
	}
	return err
}

// Setting is one effective value, for people.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"` // without passwords
	Source string   `json:"source"` // flag, variable, file:line, or "default"
}

// Settings returns the effective value of every key in the order of [Keys].
func (l *Loaded) Settings() []Setting {
	var out []Setting
	root := reflect.ValueOf(l.Config)
	for _, k := range Keys() {
		s := Setting{Key: k.Name, Values: []string{}, Source: "default"}
		if k.content != "" {
			if file := l.files[k.content]; file != "" {
				s.Values, s.Source = []string{file}, l.sources[k.content]
				out = append(out, s)
			}
			continue
		}
		field := root.FieldByIndex(k.index)
		if source, set := l.sources[k.Name]; set {
			s.Source = source
		}
		if k.List {
			s.Values = append(s.Values, redactAll(k, field.Interface().([]string))...)
		} else {
			s.Values = append(s.Values, redactAll(k, []string{k.format(field)})...)
		}
		out = append(out, s)
	}
	return out
}

// IsSet reports whether the key was set by a flag, the environment or the file.
func (l *Loaded) IsSet(key string) bool { return l.sources[key] != "" }

// ofTheMachine are the keys of snowflake mode that say how this machine is reached.
var ofTheMachine = []string{"snowflake.address", "snowflake.interface", "snowflake.force-address"}

// From returns where the value of a key was set: the file that holds it alone, or else the
// flag, variable or line. "": nowhere.
func (l *Loaded) From(key string) string { return cmp.Or(l.files[key], l.sources[key]) }

// AsksForSnowflake reports whether a key of snowflake mode was set: the user then counts on
// that mode. Keys that say how this machine is reached do not count, because they may stand in
// every configuration of a place.
func (l *Loaded) AsksForSnowflake() bool {
	return slices.ContainsFunc(Keys(), func(k Key) bool {
		return strings.HasPrefix(k.Name, "snowflake.") && l.IsSet(k.Name) && !slices.Contains(ofTheMachine, k.Name)
	})
}
