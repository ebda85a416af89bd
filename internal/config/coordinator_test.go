package config_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
)

func TestFenceURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, scheme, folder, name string
		servers                    []string
	}{
		{"zookeeper://zk1:2181,zk2:2181/leaf", "zookeeper", "", "leaf", []string{"zk1:2181", "zk2:2181"}},
		{"zookeeper://zk1:2181/ids/eu/leaf", "zookeeper", "/ids/eu", "leaf", []string{"zk1:2181"}},
		{"etcd://[2001:db8::1]:2379/leaf", "etcd", "", "leaf", []string{"[2001:db8::1]:2379"}},
		{"etcds://u:p%40@a:2379,b:2379/leaf", "etcds", "", "leaf", []string{"a:2379", "b:2379"}},
	} {
		scheme, servers, folder, name, err := config.FenceURL(tc.text)
		if err != nil || scheme != tc.scheme || folder != tc.folder || name != tc.name || !slices.Equal(servers, tc.servers) {
			t.Errorf("%s: got %s %v %q %q, %v", tc.text, scheme, servers, folder, name, err)
		}
	}
	for _, text := range []string{
		"etcd://a:2379", "etcd://a:2379/", "etcd://a/leaf", "etcd:///leaf", "etcd://a:2379,/leaf", "etcd://a:2379/x/leaf", "a:2379/leaf",
		"zookeeper://u:p@zk:2181/leaf", "redis://a:1/leaf", "etcd://a:2379/leaf?x=1", "etcd://a:2379/..",
	} {
		if _, _, _, _, err := config.FenceURL(text); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: got %v, want a refusal", text, err)
		}
	}
}
