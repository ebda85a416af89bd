package cli

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/alecthomas/kong"
)

// settings are the flags of a command that belong to configuration keys, and
// --config.
type settings struct {
	File string       `name:"config" group:"Node" placeholder:"FILE" help:"Configuration file: .yaml, .yml, or leaf.properties of the Java server. Also LEAF_CONFIG."`
	Keys kong.Plugins `embed:""`
}

// settingsOf has a flag for each key of a node ("all"), for those of commands too ("every"), or
// for those that commands need to find what they work on: a node, and without one its stores,
// registry or directory.
func settingsOf(keys string) settings {
	helps, some := map[string]map[string]string{
		"schema": storeHelp, "store": remote(storeHelp), "registry": remote(registryHelp), "directory": remote(directoryHelp), "node": remote(nodeHelp), "client": clientHelp,
	}[keys]
	if some {
		return someSettings(helps)
	}
	all := slices.DeleteFunc(slices.Clone(config.Keys()), func(k config.Key) bool { return k.Command && keys != "every" })
	return settings{Keys: kong.Plugins{flagStruct(all)}}
}

// remoteHelp has the keys with which a command asks a node of another machine.
var remoteHelp = map[string]string{
	"endpoint":             "Ask the node whose admin.addr is there, https://HOST:8081, and open nothing on this machine. http:// only for 127.0.0.1, [::1] and localhost. Also LEAF_ENDPOINT.",
	"endpoint-ca":          "Certificates (PEM) of the authorities that may have signed the endpoint's; a self-signed one itself. (default: those that the system trusts)",
	"endpoint-server-name": "Name that the certificate of the endpoint must be for. (default: the endpoint's host)",
	tokenFileKey:           "File that holds a value of the node's admin.token, for --endpoint. Also LEAF_ADMIN_TOKEN_FILE.",
}

const tokenFileKey = "admin.token-file"

// remote adds remoteHelp.
func remote(helps map[string]string) map[string]string {
	all := maps.Clone(helps)
	maps.Copy(all, remoteHelp)
	return all
}

// nodeHelp is storeHelp for a command that needs a running node.
var nodeHelp = map[string]string{"data-dir": "Data directory of the node."}

// clientHelp has the keys of a command that asks nodes for IDs as their clients do.
var clientHelp = map[string]string{
	"auth.token-file":      "File that holds a value of the nodes' auth.token; of several lines the first is sent. Also LEAF_AUTH_TOKEN_FILE.",
	"endpoint-ca":          "Certificates (PEM) of the authorities that may have signed the nodes' certificates; a self-signed one itself. Also LEAF_ENDPOINT_CA. (default: those that the system trusts)",
	"endpoint-server-name": "Name that the nodes' certificates must be for. Also LEAF_ENDPOINT_SERVER_NAME. (default: the host of each URL)",
}

// storeHelp has the keys that a command needs to find a node or its stores, and
// what they mean to it. The other keys still count, from the environment and the
// file.
var storeHelp = map[string]string{
	"data-dir":              "Data directory of the node. If a node runs there, the command talks to it.",
	"store":                 "Open this database, even if a node runs: mysql://user:password@host:3306/db, postgres://user:password@host:5432/db, sqlite:PATH or etcd://HOST:PORT,HOST:PORT/NAME. Several databases: repeat as NAME=URL.",
	"segment.cluster-fence": "The cluster fence of the nodes: zookeeper://HOST:PORT,…/NAME or etcd://HOST:PORT,…/NAME.",
	"tag-rule":              "Which database holds which tags, if there are several; the same as the nodes have.",
}

// withFiles adds the keys that name a file with the value of one of helps.
func withFiles(helps map[string]string) map[string]string {
	all := maps.Clone(helps)
	for _, k := range config.Keys() {
		if name, ok := strings.CutSuffix(k.Name, "-file"); ok && helps[name] != "" {
			all[k.Name] = k.Help
		}
	}
	return all
}

// registryHelp is the same for a registry of worker IDs.
var registryHelp = map[string]string{
	"data-dir":                   storeHelp["data-dir"],
	"store":                      "Use the registry in this database, even if a node runs; the same as the nodes have.",
	"snowflake.registry":         "Use this registry, even if a node runs.",
	"snowflake.registry-address": "Servers of the registry: HOST:PORT of ZooKeeper, HOST:PORT or URL of etcd, one database URL for sql. Repeatable.",
	"snowflake.name":             "Part of the path or prefix in ZooKeeper and etcd; the same as the nodes have.",
	"snowflake.namespace":        "Label of the environment; the same as the nodes have.",
	"snowflake.layout":           "Bits of an ID; the same as the nodes have.",
}

// directoryHelp is the same for the directory of nodes.
var directoryHelp = map[string]string{
	"data-dir":       storeHelp["data-dir"],
	"store":          "Read the directory in this database, even if a node runs; the same as the nodes have.",
	"node.discovery": "Read this directory, even if a node runs: store, etcd://HOST:PORT,…/NAME or zookeeper://HOST:PORT,…/NAME.",
}

func someSettings(helps map[string]string) settings {
	var keys []config.Key
	helps = withFiles(helps)
	for _, k := range config.Keys() {
		if help, needed := helps[k.Name]; needed {
			k.Help = help
			keys = append(keys, k)
		}
	}
	return settings{Keys: kong.Plugins{flagStruct(keys)}}
}

// flagStruct makes a struct whose tags are a flag for every key, the form in which
// kong takes what is not known at compile time.
func flagStruct(keys []config.Key) any {
	fields := make([]reflect.StructField, len(keys))
	for i, k := range keys {
		typ := reflect.TypeFor[rawValue]()
		tags := []string{
			"key", k.Name, "name", k.Flag(), "placeholder", k.Hint, "words", strings.Join(k.Words(), ","), "group", cmp.Or(k.Title, "Node"),
			"help", strings.ReplaceAll(flagHelp(k), "$", "$$"), // kong would take ${…} for a variable
		}
		if k.Bool {
			typ = reflect.TypeFor[rawSwitch]()
			tags = append(tags, "negatable", "")
		}
		if k.SecretFile {
			tags = append(tags, "secretfile", "true")
		}
		var tag strings.Builder
		for j := 0; j < len(tags); j += 2 {
			if tags[j+1] != "" || tags[j] == "negatable" {
				fmt.Fprintf(&tag, "%s:%s ", tags[j], strconv.Quote(tags[j+1]))
			}
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("Flag%d", i), Type: typ, Tag: reflect.StructTag(tag.String())}
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

func flagHelp(k config.Key) string {
	switch {
	case k.Default == "":
		return k.Help
	case k.Limit == "" || k.Bool:
		return fmt.Sprintf("%s (default %s)", k.Help, k.Default)
	}
	return fmt.Sprintf("%s (default %s; %s)", k.Help, k.Default, k.Limit)
}

// values returns what was given on the command line, by key name.
func (s *settings) values() map[string][]string {
	values := map[string][]string{}
	for _, plugin := range s.Keys {
		v := reflect.ValueOf(plugin).Elem()
		for i := range v.NumField() {
			var given []string
			switch f := v.Field(i).Interface().(type) {
			case rawValue:
				given = f.values
			case rawSwitch:
				given = f.values
			}
			if given != nil {
				values[v.Type().Field(i).Tag.Get("key")] = given
			}
		}
	}
	return values
}

// load merges the flags with the environment and the file, for a command.
func (s *settings) load(p Process) (*config.Loaded, error) {
	return config.Load(config.Input{Flags: s.values(), Environ: p.Environ, File: s.File, Command: true})
}

// loadAlive is load for what ends a node that does not answer. It reads no more than which node that is: what else is wrong by
// now does not concern a node that has started, which goes on with the configuration that it has.
func (s *settings) loadAlive(p Process) (*config.Loaded, error) {
	l, _ := config.LoadSome(config.Input{Flags: s.values(), Environ: p.Environ, File: s.File}, "data-dir", "endpoint")
	if l.Endpoint == "" && l.DataDir != "" {
		return l, nil
	}
	return s.load(p)
}

// loadClient is load for a client of nodes.
func (s *settings) loadClient(p Process) (*config.Loaded, error) {
	keys := append(slices.Collect(maps.Keys(clientHelp)), "auth.token")
	return config.LoadSome(config.Input{Flags: s.values(), Environ: p.Environ, File: s.File}, keys...)
}

// loadNode is load for a node.
func (s *settings) loadNode(p Process) (*config.Loaded, error) {
	return config.Load(config.Input{Flags: s.values(), Environ: p.Environ, File: s.File})
}

// rawValue collects the texts of one flag, to be parsed by package app.
type rawValue struct{ values []string }

// Decode implements kong.MapperValue.
func (r *rawValue) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	r.values = append(r.values, token.String())
	return nil
}

// rawSwitch is rawValue for a flag that needs no value.
type rawSwitch struct{ values []string }

// IsBool implements kong.BoolMapperValue.
func (r *rawSwitch) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (r *rawSwitch) Decode(ctx *kong.DecodeContext) error {
	text := "true"
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		token, err := ctx.Scan.PopValue("bool")
		if err != nil {
			return err
		}
		text = token.String()
	}
	r.values = append(r.values, text)
	return nil
}
