package config_test

import (
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestUnstableAddress: only a node whose address may be another one after each start is
// told what that costs.
func TestUnstableAddress(t *testing.T) {
	for _, tt := range []struct {
		registry, address string
		newDir, want      bool
	}{
		{"zookeeper", "", true, true},
		{"zookeeper", "", false, false},
		{"zookeeper", "10.0.0.1:8080", true, false},
		{"etcd", "", true, false},
		{"auto", "", true, false},
	} {
		c := config.Snowflake{Registry: tt.registry, Address: tt.address}
		got := c.Unstable(tt.newDir)
		if (got != "") != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
		// A node that takes another registry alone has the worker IDs of Java servers and of the others.
		if tt.want && !strings.Contains(got, "Another registry gives the worker IDs of Java servers and of the nodes that have this one: docs/SNOWFLAKE.md#operating says") {
			t.Errorf("it does not say what another registry does: %q", got)
		}
	}
}
