package app

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// GRPCConfig is the section grpc.
type GRPCConfig struct {
	Addr     string `key:"addr" hint:"HOST:PORT" help:"Address to listen on, or off. Default: port 9090 on the host of http.addr; a free port if that has port 0."`
	MaxConns int64  `key:"max-conns" default:"10000" min:"1" max:"1000000" help:"Most connections at once. One more is closed at once, so that the client tries the next node."`
}

// RESPConfig is the section resp.
type RESPConfig struct {
	Addr        string        `key:"addr" hint:"HOST:PORT" help:"Address to listen on, or off. Default: port 6380 on the host of http.addr; a free port if that has port 0."`
	MaxConns    int64         `key:"max-conns" default:"10000" min:"1" max:"1000000" help:"Most connections at once. One more gets an error and is closed."`
	IdleTimeout time.Duration `key:"idle-timeout" default:"30m" min:"1s" max:"24h" help:"How long a connection may stay open without a command. Pools of Redis clients keep idle connections, and some take their end for a failure."`
}

// AdminConfig is the section admin.
type AdminConfig struct {
	Addr   string   `key:"addr" hint:"HOST:PORT" help:"Address for administration over TCP, beside the socket in the data directory, or off. With health checks and metrics that stay reachable when http.addr is full. Changes need admin.token; a host that is not loopback needs it at all. Default: port 8081 on 127.0.0.1; a free port if http.addr has port 0."`
	Tokens []string `key:"token" hint:"SECRET" secret:"all" help:"What administrators over TCP must show: Authorization: Bearer. Repeatable: each value is valid. Default: none, and administration only over the socket in the data directory."`
}

// AuthConfig is the section auth.
type AuthConfig struct {
	Tokens []string `key:"token" hint:"SECRET" secret:"all" help:"What clients must show: Authorization: Bearer over HTTP and gRPC, AUTH over the Redis protocol. Repeatable: each value is valid, so that a token can be exchanged while both are in use. Default: nothing is asked for."`
}

// TLSConfig is the section tls.
type TLSConfig struct {
	Cert     string `key:"cert" hint:"FILE" help:"Certificate chain (PEM) for HTTP, gRPC and the Redis protocol. Default: plain TCP."`
	Key      string `key:"key" hint:"FILE" help:"Private key of the certificate (PEM)."`
	ClientCA string `key:"client-ca" hint:"FILE" help:"Certificates (PEM) that must have signed the certificate of every client. The name in a client's certificate is what limits know it by."`
}

// addrOff is the value of an address key that switches a server off.
const addrOff = "off"

// The ports of addresses that are not configured.
const (
	defaultGRPCPort  = "9090"
	defaultRESPPort  = "6380"
	defaultAdminPort = "8081"
)

// beside returns addr or, if it is "", the port on host. A node whose HTTP server takes
// a free port takes one for everything, so that many nodes fit on one machine.
func (c Config) beside(addr, host, port string) string {
	if addr != "" {
		return addr
	}
	if _, p, err := net.SplitHostPort(c.HTTP.Addr); err == nil && p == "0" {
		port = "0"
	}
	return net.JoinHostPort(host, port)
}

func (c Config) httpHost() string {
	host, _, _ := net.SplitHostPort(c.HTTP.Addr)
	return host
}

func (c Config) grpcAddr() string { return c.beside(c.GRPC.Addr, c.httpHost(), defaultGRPCPort) }
func (c Config) respAddr() string { return c.beside(c.RESP.Addr, c.httpHost(), defaultRESPPort) }
func (c Config) adminAddr() string {
	return c.beside(c.Admin.Addr, "127.0.0.1", defaultAdminPort)
}

// validateServers checks the sections of this file.
func (c Config) validateServers() (errs []error) {
	for _, a := range []struct{ key, addr string }{{"grpc.addr", c.GRPC.Addr}, {"resp.addr", c.RESP.Addr}, {"admin.addr", c.Admin.Addr}} {
		if a.addr == "" || a.addr == addrOff {
			continue
		}
		if err := checkAddr(a.key, a.addr); err != nil {
			errs = append(errs, err)
		}
	}
	if _, _, err := net.SplitHostPort(c.adminAddr()); err == nil && len(c.Admin.Tokens) == 0 && !accept.IsLoopback(c.adminAddr()) {
		errs = append(errs, &ConfigError{Key: "admin.addr", Value: c.Admin.Addr, Limit: "must be on 127.0.0.1, [::1] or localhost as long as admin.token is not set"})
	}
	switch {
	case c.TLS.Cert != "" && c.TLS.Key == "":
		errs = append(errs, &ConfigError{Key: "tls.key", Limit: "must be set, because tls.cert is"})
	case c.TLS.Cert == "" && c.TLS.Key != "":
		errs = append(errs, &ConfigError{Key: "tls.cert", Limit: "must be set, because tls.key is"})
	case c.TLS.Cert == "" && c.TLS.ClientCA != "":
		errs = append(errs, &ConfigError{Key: "tls.cert", Limit: "must be set, because tls.client-ca is"})
	}
	return errs
}

// listen binds the address of a server, nil if it is off.
func listen(key, addr string) (net.Listener, error) {
	if addr == addrOff {
		return nil, nil //nolint:nilnil // a server that is off is a valid configuration
	}
	ln, err := net.Listen("tcp", addr) //nolint:noctx // binding does not wait
	if err != nil {
		flag, off := "--"+Key{Name: key}.Flag(), ""
		if key != "http.addr" {
			off = ", or " + flag + "=" + addrOff
		}
		return nil, &ConfigError{Key: key, Value: addr, Limit: fmt.Sprintf("%v; choose another %s%s", errors.Unwrap(err), flag, off)}
	}
	return ln, nil
}
