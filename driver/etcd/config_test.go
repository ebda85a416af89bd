package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/etcd"
)

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*etcd.Config)
		want   string // part of the error; empty: none
	}{
		{"as it is", func(*etcd.Config) {}, ""},
		{"URL", func(c *etcd.Config) { c.Endpoints = []string{"https://etcd-1:2379", "[::1]:2379"} }, ""},
		{"no endpoint", func(c *etcd.Config) { c.Endpoints = nil }, "endpoints"},
		{"empty endpoint", func(c *etcd.Config) { c.Endpoints = []string{"a:1", " "} }, "endpoint"},
		{"two endpoints in one", func(c *etcd.Config) { c.Endpoints = []string{"a:1,b:1"} }, `"a:1,b:1"`},
		{"no prefix", func(c *etcd.Config) { c.Prefix = "" }, "prefix"},
		{"slash at the end", func(c *etcd.Config) { c.Prefix = "/leaf/" }, `"/leaf/"`},
		{"only a user", func(c *etcd.Config) { c.Username = "leaf" }, "password"},
		{"only a password", func(c *etcd.Config) { c.Password = "secret" }, "username"},
		{"negative time-out", func(c *etcd.Config) { c.DialTimeout = -1 }, "timeout"},
		{"short lease", func(c *etcd.Config) { c.Lease = time.Second }, "2s to 1h"},
		{"long lease", func(c *etcd.Config) { c.Lease = 2 * time.Hour }, "lease"},
		{"broken lease", func(c *etcd.Config) { c.Lease = 2500 * time.Millisecond }, "whole seconds"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := etcd.Config{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/leaf"}
			tt.change(&cfg)
			records, err := etcd.NewRecords(cfg)
			if err == nil {
				err = records.Close()
			}
			fence, fenceErr := etcd.NewFence(cfg)
			if fenceErr == nil {
				fenceErr = fence.Close()
			}
			for _, err := range []error{err, fenceErr} {
				switch {
				case tt.want == "" && err != nil:
					t.Error(err)
				case tt.want != "" && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("error %v; want ErrBadRequest with %q", err, tt.want)
				case tt.want != "" && strings.Contains(err.Error(), "secret"):
					t.Errorf("error %q shows the password", err)
				}
			}
		})
	}
}

func TestClosed(t *testing.T) {
	records, err := etcd.NewRecords(etcd.Config{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/leaf"})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := records.List(short); err == nil {
		t.Error("List succeeded without a server")
	}
	for range 2 {
		if err := records.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := records.List(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("List after Close: %v", err)
	}
}
