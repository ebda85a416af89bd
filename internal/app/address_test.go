package app_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

func addrs(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestAdvertisedAddress(t *testing.T) {
	t.Parallel()
	lo := app.Interface{Name: "lo", Up: true, Loopback: true, Addrs: addrs("127.0.0.1", "::1")}
	docker := app.Interface{Name: "docker0", Up: true, Addrs: addrs("172.17.0.1")}
	bridge := app.Interface{Name: "br-4f2a", Up: true, Addrs: addrs("172.18.0.1")}
	veth := app.Interface{Name: "veth12", Up: true, Addrs: addrs("fe80::5", "10.88.0.9")}
	down := app.Interface{Name: "eno1", Addrs: addrs("10.0.0.9")}
	eth0 := app.Interface{Name: "eth0", Up: true, Addrs: addrs("fe80::1", "2001:db8::5", "10.0.0.5")}
	eth1 := app.Interface{Name: "eth1", Up: true, Addrs: addrs("192.168.1.5")}
	v6 := app.Interface{Name: "en0", Up: true, Addrs: addrs("fe80::2", "2001:db8::7")}
	host := []app.Interface{lo, docker, bridge, veth, down, eth0, eth1}

	type c = config.Snowflake
	cases := []struct {
		name  string
		c     c
		local bool // the registry is not shared
		list  []app.Interface
		want  string // or "error: " and a part of its text
	}{
		{name: "the first that others can reach, IPv4 first", list: host, want: "10.0.0.5:8080"},
		{name: "preferred interface", c: c{Interfaces: []string{"eth1"}}, list: host, want: "192.168.1.5:8080"},
		{name: "preference in order, with a pattern", c: c{Interfaces: []string{"bond*", "eth*"}}, list: host, want: "10.0.0.5:8080"},
		{name: "a preferred interface that is down", c: c{Interfaces: []string{"eno1", "eth1"}}, list: host, want: "192.168.1.5:8080"},
		{name: "no preferred interface", c: c{Interfaces: []string{"wlan*"}}, list: host, want: `error: snowflake.interface="wlan*": no address that other machines can reach was found among lo (127.0.0.1, ::1), docker0 (172.17.0.1)`},
		{name: "IPv6 only", list: []app.Interface{lo, v6}, want: "[2001:db8::7]:8080"},
		{name: "only a container bridge", list: []app.Interface{lo, docker, bridge}, want: "error: snowflake.address: no address that other machines can reach was found among lo"},
		{name: "no network", list: []app.Interface{lo}, want: "error: set it to this node's IP:PORT"},
		{name: "no interface at all", want: "error: among no interfaces"},
		{name: "in a container of the default network", list: []app.Interface{lo, {Name: "eth0", Up: true, Addrs: addrs("172.17.0.2")}}, want: "172.17.0.2:8080"},
		{name: "a preferred bridge, forced", c: c{Interfaces: []string{"docker0"}, Force: true}, list: host, want: "172.17.0.1:8080"},
		{name: "a preferred bridge", c: c{Interfaces: []string{"docker0"}}, list: host, want: "error: snowflake.interface"},

		{name: "configured", c: c{Address: "10.1.1.1:9000"}, list: host, want: "10.1.1.1:9000"},
		{name: "configured IP", c: c{Address: "10.1.1.1"}, list: host, want: "10.1.1.1:8080"},
		{name: "configured port", c: c{Address: ":9000"}, list: host, want: "10.0.0.5:9000"},
		{name: "configured IPv6", c: c{Address: "[2001:db8::1]:9000"}, list: host, want: "[2001:db8::1]:9000"},
		{name: "configured IPv6 without port", c: c{Address: "2001:db8::1"}, list: host, want: "[2001:db8::1]:8080"},
		{name: "IPv4 in IPv6 is IPv4", c: c{Address: "::ffff:10.1.1.1"}, list: host, want: "10.1.1.1:8080"},
		{name: "loopback", c: c{Address: "127.0.0.1:9000"}, list: host, want: `error: snowflake.address="127.0.0.1:9000": is a loopback address, which other machines cannot tell from their own; name another one, or set snowflake.force-address`},
		{name: "loopback of IPv6", c: c{Address: "::1"}, list: host, want: "error: is a loopback address"},
		{name: "unspecified", c: c{Address: "0.0.0.0:9000"}, list: host, want: "error: stands for all addresses"},
		{name: "link-local", c: c{Address: "169.254.1.1"}, list: host, want: "error: is link-local"},
		{name: "of a bridge", c: c{Address: "172.17.0.1:9000"}, list: host, want: "error: belongs to docker0, a bridge for containers"},
		{name: "of a bridge of a network", c: c{Address: "172.18.0.1"}, list: host, want: "error: belongs to br-4f2a"},
		{name: "forced", c: c{Address: "127.0.0.1:9000", Force: true}, list: host, want: "127.0.0.1:9000"},
		{name: "a host name", c: c{Address: "leaf-0:9000"}, list: host, want: "error: must be IP:PORT, IP or :PORT"},
		{name: "port 0", c: c{Address: "10.1.1.1:0"}, list: host, want: "error: a port from 1 to 65535"},
		{name: "a zone", c: c{Address: "fe80::1%eth0"}, list: host, want: "error: must be IP:PORT"},

		{name: "a registry of this machine needs none", local: true, list: []app.Interface{lo}, want: "127.0.0.1:8080"},
		{name: "a registry of this machine takes any", c: c{Address: "127.0.0.1:9000"}, local: true, list: host, want: "127.0.0.1:9000"},
		{name: "a worker map needs ours", c: c{WorkerMap: []string{"10.0.0.5:8080=1"}}, local: true, list: host, want: "10.0.0.5:8080"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := app.Advertised(tc.c, !tc.local, 8080, func() ([]app.Interface, error) { return tc.list, nil })
			if want, isError := strings.CutPrefix(tc.want, "error: "); isError {
				if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, leaf.ErrBadRequest) {
					t.Errorf("got  %s, %v\nwant %s", got, err, want)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

// TestUnstableAddressIsSaid: a node that may use up a number with each start says so at
// its first one.
func TestUnstableAddressIsSaid(t *testing.T) {
	t.Parallel()
	for address, said := range map[string]bool{"": true, "10.0.0.5:8080": false} {
		t.Run("address="+address, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			c.Snowflake.Registry, c.Snowflake.Addresses, c.Snowflake.Address = "zookeeper", []string{port.Unused(t)}, address
			c.Snowflake.Force, c.HTTP.Addr = true, port.Unused(t)
			c.GRPC.Addr, c.RESP.Addr, c.Admin.Addr = "off", "off", "off"
			var log lockedBuffer
			eth0 := app.Interface{Name: "eth0", Up: true, Addrs: addrs("10.0.0.5")}
			a, err := app.New(c, app.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}.On(eth0))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.Stop(context.Background()) })
			if err := a.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "level=WARN msg=\"with snowflake.registry=zookeeper the address is the identity, and a number is never used again."); got != said {
				t.Errorf("%s", log.String())
			}
		})
	}
}
