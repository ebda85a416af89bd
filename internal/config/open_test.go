package config_test

import (
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestOpenToEverybody: a node that asks for nothing does not start on an address that other
// machines reach, unless that is meant.
func TestOpenToEverybody(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(*config.Config)
		want string
	}{
		"loopback":      {func(*config.Config) {}, ""},
		"all addresses": {func(c *config.Config) { c.HTTP.Addr = ":8080" }, `http.addr=":8080"`},
		"gRPC alone":    {func(c *config.Config) { c.GRPC.Addr = "10.0.0.1:9090" }, `grpc.addr="10.0.0.1:9090"`},
		"RESP alone":    {func(c *config.Config) { c.RESP.Addr = "10.0.0.1:6380" }, `resp.addr="10.0.0.1:6380"`},
		"meant":         {func(c *config.Config) { c.HTTP.Addr, c.Auth.Open = ":8080", true }, ""},
		"a token":       {func(c *config.Config) { c.HTTP.Addr, c.Auth.Tokens = ":8080", []string{"x"} }, ""},
		"named tokens":  {func(c *config.Config) { c.HTTP.Addr, c.Auth.Named = ":8080", "store" }, ""},
	} {
		c := config.Default()
		c.DataDir = "/data"
		tt.edit(&c)
		err := c.Validate()
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "auth.open=true")) {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
	}
}
