package app_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestProtocolsShareTheIDs: one node, three protocols, one series of numbers.
func TestProtocolsShareTheIDs(t *testing.T) {
	t.Parallel()
	a, _ := start(t, embedded(shortDir(t)))
	if _, body := get(t, a, "/api/segment/get/leaf-segment-test"); body != "1" {
		t.Errorf("HTTP: %s", body)
	}
	if got := redis(t, a, "INCR leaf-segment-test"); got != ":2" {
		t.Errorf("RESP: %s", got)
	}
	conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	reply, err := leafpb.NewLeafServiceClient(conn).Next(t.Context(), &leafpb.NextRequest{Tag: "leaf-segment-test", Count: 3})
	if err != nil || len(reply.GetRanges()) != 1 || reply.GetRanges()[0].GetLo() != 3 || reply.GetRanges()[0].GetHi() != 6 {
		t.Errorf("gRPC: %v, %v", reply, err)
	}
	if got := redis(t, a, "LEAF.SNOWFLAKE"); len(got) != len(":1234567890123456789") {
		t.Errorf("RESP snowflake: %s", got)
	}
}

// redis sends one inline command and returns the first line of the reply.
func redis(t *testing.T, a *app.App, command string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", a.AddrOf("resp"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// rpc asks for one ID over gRPC, and returns the reply or the error as text.
func rpc(t *testing.T, a *app.App, tag string) string {
	t.Helper()
	conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = conn.Close() }()
	reply, err := leafpb.NewLeafServiceClient(conn).Next(t.Context(), &leafpb.NextRequest{Tag: tag})
	return fmt.Sprint(reply, err)
}

// TestServersThatAreOff: each server but that for HTTP can be switched off.
func TestServersThatAreOff(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.GRPC.Addr, c.RESP.Addr, c.Admin.Addr = "off", "off", "off"
	a, _ := start(t, c)
	if a.AddrOf("grpc") != "" || a.AddrOf("resp") != "" || a.AddrOf("admin") != "" {
		t.Errorf("%q %q %q", a.AddrOf("grpc"), a.AddrOf("resp"), a.AddrOf("admin"))
	}
	if _, body := get(t, a, "/api/segment/get/leaf-segment-test"); body != "1" {
		t.Errorf("HTTP: %s", body)
	}
}

// TestAddressesOfTheServers: what is wrong with one is said with its key and what to do.
func TestAddressesOfTheServers(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the parallel cases
	for _, tt := range []struct {
		name   string
		change func(c *config.Config)
		want   string
	}{
		{"gRPC taken", func(c *config.Config) { c.GRPC.Addr = taken.Addr().String() }, "choose another --grpc-addr, or --grpc-addr=off"},
		{"RESP taken", func(c *config.Config) { c.RESP.Addr = taken.Addr().String() }, "choose another --resp-addr, or --resp-addr=off"},
		{"HTTP taken", func(c *config.Config) { c.HTTP.Addr = taken.Addr().String() }, "choose another --http-addr"},
		{"no address", func(c *config.Config) { c.GRPC.Addr = "9090" }, `grpc.addr="9090": must be HOST:PORT`},
		{"administration for everybody", func(c *config.Config) { c.Admin.Addr = ":8081" }, `admin.addr=":8081": must be on 127.0.0.1, [::1] or localhost as long as admin.token is not set`},
		{"administration for everybody without TLS", func(c *config.Config) { c.Admin.Addr, c.Admin.Tokens = ":8081", []string{"s3cret"} }, `admin.addr=":8081": must be on 127.0.0.1, [::1] or localhost as long as tls.cert is not set`},
		{"key without certificate", func(c *config.Config) { c.TLS.Key = "x" }, "tls.cert"},
		{"no such certificate", func(c *config.Config) { c.TLS.Cert, c.TLS.Key = "/none", "/none" }, `tls.cert="/none": with tls.key=/none must be a certificate and its key`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			tt.change(&c)
			if _, err := app.New(c, app.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestEveryProtocolIsListed: what the configuration opens, the node serves, clients read where,
// and an administrator is shown.
func TestEveryProtocolIsListed(t *testing.T) {
	t.Parallel()
	listeners := config.Default().Listeners()
	var want []discovery.Address
	for _, l := range listeners[:len(listeners)-1] {
		want = append(want, discovery.Address{Protocol: l.Section, Value: l.Section})
	}
	if diff := cmp.Diff(want, app.Sections().Addresses()); diff != "" {
		t.Errorf("protocols of the node, and what clients read (-want +got):\n%s", diff)
	}
	shown := manage.AddressesOf(app.Sections(), "admin").List()
	if diff := cmp.Diff(append(want, discovery.Address{Protocol: config.SectionAdmin, Value: "admin"}), shown); diff != "" {
		t.Errorf("what an administrator is shown (-want +got):\n%s", diff)
	}
}
