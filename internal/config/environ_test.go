package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestEmptyStore: a template that has lost a value leaves an empty variable or list behind, perhaps
// on one node of many. The default would be an embedded database with the worker IDs of the others, or
// one in another folder, whose tags begin at 1 again.
func TestEmptyStore(t *testing.T) {
	t.Parallel()
	empty := func(entry string) []string { return append(slices.Clone(home), entry) }
	for name, tt := range map[string]struct {
		in      config.Input
		refused string
	}{
		"a store":                       {config.Input{Environ: empty("LEAF_STORE=")}, "LEAF_STORE: must not be empty"},
		"a store of separators":         {config.Input{Environ: empty("LEAF_STORE= ; ")}, "store (LEAF_STORE): must not be empty"},
		"the file of a store":           {config.Input{Environ: empty("LEAF_STORE_FILE=")}, "LEAF_STORE_FILE: must not be empty"},
		"a store beside one in a flag":  {config.Input{Environ: empty("LEAF_STORE="), Flags: map[string][]string{"store": {"mysql://h/d"}}}, ""},
		"a list of stores":              {config.Input{Environ: home, File: write(t, "leaf.yaml", "store: []\n")}, "store (leaf.yaml:1): must not be empty"},
		"the file of the configuration": {config.Input{Environ: empty("LEAF_CONFIG=")}, "LEAF_CONFIG: must not be empty"},
		"a kind of registry":            {config.Input{Environ: empty("LEAF_SNOWFLAKE_REGISTRY=")}, "LEAF_SNOWFLAKE_REGISTRY: must not be empty"},
		"the name of a registry":        {config.Input{Environ: empty("LEAF_SNOWFLAKE_NAME=")}, "LEAF_SNOWFLAKE_NAME: must not be empty"},
		"a range of worker IDs":         {config.Input{Environ: empty("LEAF_SNOWFLAKE_WORKER_RANGE=")}, "LEAF_SNOWFLAKE_WORKER_RANGE: must not be empty"},
		"a cluster fence":               {config.Input{Environ: empty("LEAF_SEGMENT_CLUSTER_FENCE=")}, "LEAF_SEGMENT_CLUSTER_FENCE: must not be empty"},
		"a data directory":              {config.Input{Environ: empty("LEAF_DATA_DIR=")}, "LEAF_DATA_DIR: must not be empty"},
		"a data directory of a store":   {config.Input{Environ: append(empty("LEAF_DATA_DIR="), "LEAF_STORE=mysql://h/d")}, ""},
		"returns behind a proxy":        {config.Input{Environ: empty("LEAF_SEGMENT_RETURN_UNUSED=")}, "LEAF_SEGMENT_RETURN_UNUSED: must not be empty"},
		"a registry that is off":        {config.Input{Environ: append(empty("LEAF_SNOWFLAKE_REGISTRY="), "LEAF_SNOWFLAKE_ENABLE=false")}, ""},
		"a configuration in a flag":     {config.Input{Environ: empty("LEAF_CONFIG="), File: write(t, "leaf.yaml", "store: mysql://h/d\n")}, ""},
		"an address":                    {config.Input{Environ: empty("LEAF_SNOWFLAKE_ADDRESS=")}, ""},
		"another key":                   {config.Input{Environ: empty("LEAF_NODE_ZONE=")}, ""},
		"a list of another key":         {config.Input{Environ: home, File: write(t, "leaf.yaml", "auth: {token: []}\n")}, ""},
		"a store of a command":          {config.Input{Environ: empty("LEAF_STORE="), Command: true}, ""},
	} {
		_, err := config.Load(tt.in)
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v, want %q", name, err, tt.refused)
		}
	}
}

// TestTwoFolders: the container image sets LEAF_DATA_DIR. A configuration file that names another folder, on a volume of its
// own, does not count there, and what the node knows would end with the container.
func TestTwoFolders(t *testing.T) {
	t.Parallel()
	file := write(t, "leaf.yaml", "store: mysql://h/d\ndata-dir: /var/lib/leaf\n")
	with := func(entry string) []string { return append(slices.Clone(home), entry) }
	for name, tt := range map[string]struct {
		in      config.Input
		refused bool
	}{
		"another folder":              {config.Input{Environ: with("LEAF_DATA_DIR=/data/leaf"), File: file}, true},
		"another folder, of the file": {config.Input{Environ: append(with("LEAF_DATA_DIR=/data/leaf"), "LEAF_CONFIG="+file)}, true},
		"the same folder":             {config.Input{Environ: with("LEAF_DATA_DIR=/var/lib/leaf/"), File: file}, false},
		"an empty variable":           {config.Input{Environ: with("LEAF_DATA_DIR="), File: file}, false},
		"a flag":                      {config.Input{Environ: with("LEAF_DATA_DIR=/data/leaf"), File: file, Flags: map[string][]string{"data-dir": {"/data/leaf"}}}, false},
		"a file without a folder":     {config.Input{Environ: with("LEAF_DATA_DIR=/data/leaf"), File: write(t, "leaf.yaml", "store: mysql://h/d\n")}, false},
		"a command":                   {config.Input{Environ: with("LEAF_DATA_DIR=/data/leaf"), File: file, Command: true}, false},
	} {
		_, err := config.Load(tt.in)
		if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), `data-dir="/data/leaf" (LEAF_DATA_DIR): must not differ from "/var/lib/leaf" (leaf.yaml:2)`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
