package config

import (
	"net"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// GRPC is the section grpc.
type GRPC struct {
	Addr     string `key:"addr" hint:"HOST:PORT" help:"Address to listen on, or off. Default: port 9090 on the host of http.addr; a free port if that has port 0."`
	MaxConns int64  `key:"max-conns" default:"10000" min:"1" max:"1000000" help:"Most connections at once. One more is closed at once, so that the client tries the next node."`
}

// RESP is the section resp.
type RESP struct {
	Addr        string        `key:"addr" hint:"HOST:PORT" help:"Address to listen on, or off. Default: port 6380 on the host of http.addr; a free port if that has port 0."`
	MaxConns    int64         `key:"max-conns" default:"10000" min:"1" max:"1000000" help:"Most connections at once. One more gets an error and is closed."`
	IdleTimeout time.Duration `key:"idle-timeout" default:"30m" min:"1s" max:"24h" help:"How long a connection may stay open without a command. Pools of Redis clients keep idle connections, and some take their end for a failure."`
}

// Admin is the section admin.
type Admin struct {
	Addr   string   `key:"addr" hint:"HOST:PORT" help:"Address for administration over TCP, beside the socket in the data directory, or off. With health checks and metrics that stay reachable when http.addr is full. Administration needs admin.token. A host that is not loopback needs admin.token and tls.cert, and the port then speaks TLS. Default: port 8081 on 127.0.0.1; a free port if http.addr has port 0."`
	Tokens []string `key:"token" hint:"SECRET" secret:"all" help:"What administrators over TCP must show: Authorization: Bearer. Repeatable: each value is valid. Default: none, and administration only over the socket in the data directory."`
	Pprof  bool     `key:"pprof" default:"false" help:"Serve the profiles of the process below /debug/pprof/ on admin.addr, for requests that show an admin.token. A profile costs time of the processor."`
}

// Auth is the section auth.
type Auth struct {
	Open         bool     `key:"open" default:"false" help:"Serve clients without a token or certificate on an address that other machines reach. Without it, a node with such an address needs auth.token, auth.named or tls.client-ca."`
	Named        string   `key:"named" hint:"PLACE" help:"Accept the named tokens that leaf token makes, each with its roles, and ask every client and administrator for a token: store for those in the table leaf_token of the first database, file:PATH for those in a file. A change takes effect within limit.refresh."`
	Certificates []string `key:"certificate" hint:"NAME=ROLES" help:"Roles of a client certificate (tls.client-ca) by its name, for clients without a token: issue, issue:PATTERN, snowflake and read, with a space between two. Repeatable. A certificate that is not listed has no role."`

	Tokens []string `key:"token" hint:"SECRET" secret:"all" help:"What clients must show: Authorization: Bearer over HTTP and gRPC, AUTH over the Redis protocol. Repeatable: each value is valid, so that a token can be exchanged while both are in use. Default: nothing is asked for."`
}

// TLS is the section tls.
type TLS struct {
	Cert     string `key:"cert" hint:"FILE" help:"Certificate chain (PEM) for HTTP, gRPC and the Redis protocol, and for admin.addr unless that is on loopback. Default: plain TCP."`
	Key      string `key:"key" hint:"FILE" secretfile:"true" help:"Private key of the certificate (PEM)."`
	ClientCA string `key:"client-ca" hint:"FILE" help:"Certificates (PEM) that must have signed the certificate of every client, except on admin.addr. The name in a client's certificate is what limits know it by. The file is read again when it changes; connections that are open stay. Setting or removing the key needs a restart."`
}

// AddrOff is the value of an address key that switches a server off.
const AddrOff = "off"

// Listener is where a server of a node listens.
type Listener struct {
	Section  string // of the configuration: its keys are Section.addr and Section.max-conns
	Addr     string // AddrOff if it is off
	MaxConns int64  // most connections at once
}

// SectionAdmin is the section of the listener for administrators, which is no protocol of
// clients.
const SectionAdmin = "admin"

// Listeners returns the servers of the configuration: HTTP first, then the other protocols of
// clients, and that of administrators last.
func (c Config) Listeners() []Listener {
	host, _, _ := net.SplitHostPort(c.HTTP.Addr)
	return []Listener{
		{"http", c.HTTP.Addr, c.HTTP.MaxConns},
		{"grpc", c.beside(c.GRPC.Addr, host, "9090"), c.GRPC.MaxConns},
		{"resp", c.beside(c.RESP.Addr, host, "6380"), c.RESP.MaxConns},
		{SectionAdmin, c.adminAddr(), 1000}, // not a key
	}
}

func (c Config) adminAddr() string { return c.beside(c.Admin.Addr, "127.0.0.1", "8081") }

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

// AdminRemote reports whether the administrator's port can be reached from other machines.
// It then speaks TLS, and on loopback it does not: health checks and collectors of metrics
// on the same machine need no certificate.
func (c Config) AdminRemote() bool {
	_, _, err := net.SplitHostPort(c.adminAddr())
	return err == nil && !accept.IsLoopback(c.adminAddr())
}

// validateServers checks the sections of this file.
func (c Config) validateServers() (errs []error) {
	for _, l := range c.Listeners()[1:] {
		if l.Addr != AddrOff {
			if err := checkAddr(l.Section+".addr", l.Addr); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if c.AdminRemote() {
		const onlyHere = "must be on 127.0.0.1, [::1] or localhost as long as "
		if len(c.Admin.Tokens) == 0 && c.Auth.Named == "" {
			errs = append(errs, &Error{Key: "admin.addr", Value: c.Admin.Addr, Limit: onlyHere + "admin.token is not set"})
		}
		if c.TLS.Cert == "" {
			errs = append(errs, &Error{Key: "admin.addr", Value: c.Admin.Addr, Limit: onlyHere + "tls.cert is not set: without TLS, the network can read the token"})
		}
	}
	errs = append(errs, c.validateAuth()...)
	switch {
	case c.TLS.Cert != "" && c.TLS.Key == "":
		errs = append(errs, &Error{Key: "tls.key", Limit: "must be set, because tls.cert is"})
	case c.TLS.Cert == "" && c.TLS.Key != "":
		errs = append(errs, &Error{Key: "tls.cert", Limit: "must be set, because tls.key is"})
	case c.TLS.Cert == "" && c.TLS.ClientCA != "":
		errs = append(errs, &Error{Key: "tls.cert", Limit: "must be set, because tls.client-ca is"})
	}
	return errs
}
