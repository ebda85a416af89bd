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
