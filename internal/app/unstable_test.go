package app_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
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
		c := app.SnowflakeConfig{Registry: tt.registry, Address: tt.address}
		if got := app.Unstable(c, tt.newDir); (got != "") != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
