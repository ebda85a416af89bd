package config_test

import (
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestEndpoint: a token leaves the machine under TLS only, and what is no endpoint is refused
// before a token is sent anywhere.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, value, want string }{
		{"endpoint", "https://node.example:8081", ""},
		{"endpoint", "https://node.example/", ""},
		{"endpoint", "http://127.0.0.1:8081", ""},
		{"endpoint", "http://[::1]:8081", ""},
		{"endpoint", "http://localhost:8081/", ""},
		{"endpoint", "http://node.example:8081", "must begin with https://, because the network could read the token"},
		{"endpoint", "http://10.0.0.1:8081", "ssh -L 8081:127.0.0.1:8081 10.0.0.1"},
		{"endpoint", "http://0.0.0.0:8081", "must begin with https://"},
		{"endpoint", "http://localhost.evil.example", "must begin with https://"},
		{"endpoint", "node.example:8081", "must be https://HOST:PORT"},
		{"endpoint", "https://:8081", "must be https://HOST:PORT"},
		{"endpoint", "https://node.example:8081/v1", "must be https://HOST:PORT"},
		{"endpoint", "https://node.example:8081?a=b", "must be https://HOST:PORT"},
		{"endpoint", "https://node.example:x", "must be https://HOST:PORT"},
		{"endpoint", "ftp://127.0.0.1", "must be https://HOST:PORT"},
		{"endpoint", "https://me:hunter2@node.example:8081", "without user, password and parameters"},
		{"endpoint", "https://me:hunter2@node.example:8081%", "must be https://HOST:PORT"},
		{"endpoint", "http://127.0.0.1:hunter2@node.example", "without user, password and parameters"},
		{"endpoint", "https://hunter2@node.example:8081", "without user, password and parameters"},
		{"endpoint", "https://node.example:8081?token=hunter2", "must be https://HOST:PORT"},
		{"endpoint", "https://node.example:8081/#hunter2", "must be https://HOST:PORT"},
		{"endpoint-ca", "/ca.pem", "needs --endpoint"},
		{"endpoint-server-name", "node.example", "needs --endpoint"},
	} {
		_, err := config.Load(config.Input{Flags: map[string][]string{tt.key: {tt.value}}, Environ: []string{"HOME=/home/me"}, Command: true})
		switch {
		case (err == nil) != (tt.want == ""):
			t.Errorf("%s=%s: %v", tt.key, tt.value, err)
		case err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s=%s: %v\nwant %s", tt.key, tt.value, err, tt.want)
		}
	}
}

// TestEndpointNeedsNoHome: a command that asks a node elsewhere has no use for a data
// directory. A node has, whatever the environment says for commands.
func TestEndpointNeedsNoHome(t *testing.T) {
	t.Parallel()
	in := config.Input{Environ: []string{"LEAF_ENDPOINT=https://node.example:8081"}}
	if _, err := config.Load(in); err == nil {
		t.Error("a node has no data directory")
	}
	in.Command = true
	if _, err := config.Load(in); err != nil {
		t.Error(err)
	}
}

// TestFrom: an error about a secret names the file or variable that it is in, and not the key.
func TestFrom(t *testing.T) {
	t.Parallel()
	file := write(t, "token", "s3cret\n")
	for _, tt := range []struct {
		in   config.Input
		want string
	}{
		{config.Input{Flags: map[string][]string{"admin.token-file": {file}}}, file},
		{config.Input{Environ: []string{"LEAF_ADMIN_TOKEN_FILE=" + file}}, file},
		{config.Input{Environ: []string{"LEAF_ADMIN_TOKEN=s3cret"}}, "LEAF_ADMIN_TOKEN"},
		{config.Input{}, ""},
	} {
		tt.in.Environ = append(tt.in.Environ, "HOME=/home/me")
		l, err := config.Load(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.From("admin.token"); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
