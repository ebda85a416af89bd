package zookeeper_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	good := zookeeper.Config{Servers: []string{"127.0.0.1:2181"}, Name: "leaf"}
	for name, change := range map[string]func(*zookeeper.Config){
		"no servers":      func(c *zookeeper.Config) { c.Servers = nil },
		"no port":         func(c *zookeeper.Config) { c.Servers = []string{"host"} },
		"no name":         func(c *zookeeper.Config) { c.Name = "" },
		"slash":           func(c *zookeeper.Config) { c.Name = "a/b" },
		"dots":            func(c *zookeeper.Config) { c.Name = ".." },
		"long name":       func(c *zookeeper.Config) { c.Name = strings.Repeat("x", 65) },
		"relative chroot": func(c *zookeeper.Config) { c.Chroot = "ids" },
		"double slash":    func(c *zookeeper.Config) { c.Chroot = "/a//b" },
		"server in path":  func(c *zookeeper.Config) { c.Chroot = "/a,b:2/a" },
		"short session":   func(c *zookeeper.Config) { c.SessionTimeout = time.Millisecond },
	} {
		cfg := good
		change(&cfg)
		if _, err := zookeeper.NewOriginal(cfg); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: NewOriginal: %v; want ErrBadRequest", name, err)
		}
	}
	if o, err := zookeeper.NewOriginal(good); err != nil {
		t.Error(err)
	} else if err := errors.Join(o.Close(), o.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestParseServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text    string
		servers []string
		chroot  string
	}{
		{"127.0.0.1:2181", []string{"127.0.0.1:2181"}, ""},
		{"a, b:1,[::1]:3", []string{"a:2181", "b:1", "[::1]:3"}, ""},
		{"a:1,b:2/ids/leaf/", []string{"a:1", "b:2"}, "/ids/leaf"},
	} {
		servers, chroot, err := zookeeper.ParseServers(tt.text)
		if err != nil || !slices.Equal(servers, tt.servers) || chroot != tt.chroot {
			t.Errorf("ParseServers(%q) = %q, %q, %v; want %q, %q", tt.text, servers, chroot, err, tt.servers, tt.chroot)
		}
	}
	for _, text := range []string{"", ",", "a:1,", "a:1/x//y", "a:1/ids,b:2/ids", "a:1/ids,b:2", "a/ids, b/ids"} {
		if servers, chroot, err := zookeeper.ParseServers(text); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("ParseServers(%q) = %q, %q, %v; want ErrBadRequest", text, servers, chroot, err)
		}
	}
}
