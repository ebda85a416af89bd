package config_test

import (
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
		if got := c.Unstable(tt.newDir); (got != "") != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
