package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

const (
	envPrefix = "LEAF_"
	// envConfig names the configuration file if the flag --config does not.
	envConfig = "LEAF_CONFIG"
	// envTestPrefix and envLong belong to this project's test suites (servers to use,
	// length of the runs); a node started by them ignores both.
	envTestPrefix = "LEAF_TEST_"
	envLong       = "LEAF_LONG"
	// ListSeparator stands between the values of a list in one variable. A comma
	// can be part of a URL.
	ListSeparator = ";"
)

// serviceLink matches what Kubernetes sets in every container if a Service is
// called leaf or leaf-something: LEAF_PORT=tcp://10.0.0.1:8080,
// LEAF_SERVICE_HOST=10.0.0.1 and so on. Refusing those would keep a node from
// starting in the most obvious setup.
var serviceLink = regexp.MustCompile(`^LEAF(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=|^LEAF(_[A-Z0-9_]+)?_PORT=(tcp|udp|sctp)://`)

// environSettings returns what the environment sets. An empty variable counts as
// not set, as shells and container files often have no other way to say so.
func environSettings(environ []string) (settings []setting, configFile string, errs []error) {
	byEnv := map[string]Key{}
	names := []string{strings.TrimPrefix(envConfig, envPrefix)}
	for _, k := range Keys() {
		byEnv[k.Env()] = k
		names = append(names, strings.TrimPrefix(k.Env(), envPrefix))
	}
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours || strings.HasPrefix(name, envTestPrefix) || name == envLong || value == "" {
			continue
		}
		if name == envConfig {
			configFile = value
			continue
		}
		if k, known := byEnv[name]; known {
			settings = append(settings, setting{key: k.Name, values: splitList(k, value), source: name})
			continue
		}
		if !serviceLink.MatchString(entry) {
			errs = append(errs, &Error{Key: name, Limit: unknown("environment variable", name, rest, names, envPrefix)})
		}
	}
	return settings, configFile, errs
}

// emptyLimit is the error of a key that keepsUnique and has no value.
const emptyLimit = "must not be empty: with the default, this node may issue IDs that it, or other nodes, have issued; remove it if the default is meant"

// empty refuses lists without values, and variables that are empty where no other source sets the key, if the
// default may repeat IDs: most likely a template or a secret has lost a value, perhaps on this node alone.
func (l *Loaded) empty(environ []string) (errs []error) {
	refuse := func(name string) {
		if slices.Contains(environ, name+"=") {
			errs = append(errs, &Error{Key: name, Limit: emptyLimit})
		}
	}
	if l.File == "" {
		refuse(envConfig)
	}
	root := reflect.ValueOf(l.Config)
	for _, k := range Keys() {
		switch {
		case !k.keepsUnique(l.Config):
		case !l.IsSet(cmp.Or(k.content, k.Name)):
			refuse(k.Env())
		case k.List && root.FieldByIndex(k.index).Len() == 0:
			errs = append(errs, &Error{Key: k.Name, Source: l.sources[k.Name], Limit: emptyLimit})
		}
	}
	return errs
}

// otherFolder refuses a variable that names another data directory than the file. The image of a container sets the variable, and
// the folder of the file may be the volume with what the node knows of its IDs. A flag decides between the two.
func otherFolder(file, env []setting, flags map[string][]string) error {
	const key = "data-dir"
	isIt := func(s setting) bool { return s.key == key }
	inFile, inEnv := slices.IndexFunc(file, isIt), slices.IndexFunc(env, isIt)
	if _, given := flags[key]; given || inFile < 0 || inEnv < 0 {
		return nil
	}
	was, is := file[inFile], env[inEnv]
	if filepath.Clean(was.values[0]) == filepath.Clean(is.values[0]) {
		return nil
	}
	return &Error{Key: key, Value: is.values[0], Source: is.source, Limit: fmt.Sprintf("must not differ from %q (%s): what this node knows of its IDs is in one of the two folders, and without it the node may repeat IDs. "+
		"Give both the folder that has the files of this node; the container image of Leaf sets the variable to a folder of its volume /data", was.values[0], was.source)}
}

// EmptyStore returns why a command must not work on an embedded database: a variable that could lead to the database of the nodes is
// empty, and nothing else takes its place, or the list of stores is. A template or a secret has lost its value, most likely, and the
// command would issue or create what the nodes have. A command that asks a node needs no store.
func (l *Loaded) EmptyStore(environ []string) error {
	const limit = "must not be empty: with the default, the command works on an embedded database of its own, and not on that of the nodes; remove it if the default is meant"
	var leads []string
	if l.File == "" {
		leads = append(leads, envConfig)
	}
	for _, k := range Keys() {
		if name := cmp.Or(k.content, k.Name); (name == "store" || name == "data-dir") && !l.IsSet(name) {
			leads = append(leads, k.Env())
		}
	}
	for _, name := range leads {
		if slices.Contains(environ, name+"=") {
			return &Error{Key: name, Limit: limit}
		}
	}
	if l.IsSet("store") && len(l.Stores) == 0 {
		return &Error{Key: "store", Source: l.sources["store"], Limit: limit}
	}
	return nil
}

// keepsUnique reports whether a node with the default of the key may issue IDs that were issued before: they come
// from another store, registry or worker ID, are of another layout, are of an embedded database that is made anew,
// or were returned behind a proxy that repeats statements (rule G).
func (k Key) keepsUnique(c Config) bool {
	switch name := cmp.Or(k.content, k.Name); name {
	case "data-dir":
		return c.NeedsStores() && len(c.Stores) == 0
	case "store":
		return c.NeedsStores()
	case FenceKey, "segment.return-unused":
		return c.Segment.Enable
	default:
		return c.Snowflake.Enable && strings.HasPrefix(name, "snowflake.") && !slices.Contains(ofTheMachine, name)
	}
}

func splitList(k Key, value string) []string {
	if !k.List {
		return []string{value}
	}
	var values []string
	for v := range strings.SplitSeq(value, ListSeparator) {
		if v = strings.TrimSpace(v); v != "" {
			values = append(values, v)
		}
	}
	return values
}
