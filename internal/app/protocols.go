package app

import (
	"net"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/respd"
)

// protocol is one in which clients ask for IDs. A new one needs its package below
// internal/server, its section and its config.Listener in internal/config, its address in
// discovery.Node, and a line in protocols.
type protocol struct {
	section string                                // of the configuration
	name    string                                // in the log
	open    func(a *App, on seat) (server, error) // all but name and listener
	address func(n *discovery.Node) *string       // where clients read its address
}

// seat is what the server of a protocol gets from the node.
type seat struct {
	ln     net.Listener
	conns  int         // most connections at once
	access leaf.Access // where it takes IDs
	node   *node       // what an administrator sees
	times  times       // of the layout of snowflake mode
}

// protocols are all there are, HTTP first.
func protocols() []protocol {
	return []protocol{
		{"http", "HTTP", openHTTP, func(n *discovery.Node) *string { return &n.HTTP }},
		{"grpc", "gRPC", openGRPC, func(n *discovery.Node) *string { return &n.GRPC }},
		{"resp", "RESP", openRESP, func(n *discovery.Node) *string { return &n.RESP }},
	}
}

func openHTTP(a *App, on seat) (server, error) {
	c := httpd.Config{
		Access:        on.access,
		MayRead:       a.tokens.clients.MayRead,
		Formats:       &a.opaque.formats,
		TLS:           a.secure,
		Ready:         a.publicReady,
		Metrics:       a.metrics,
		Times:         on.times,
		MaxConns:      on.conns,
		HeaderTimeout: a.cfg.HTTP.HeaderTimeout,
		IdleTimeout:   a.cfg.HTTP.IdleTimeout,
		WriteTimeout:  max(a.cfg.Segment.MaxWait, a.cfg.Order.MaxWait) + replyTime,
		RequestIDs:    a.accessLog.Load,
		Logger:        a.log,
	}
	if a.alloc != nil {
		c.Cache, c.DB = a.buffers, on.node.rows
	}
	if a.cfg.HTTP.Console {
		c.Console = a.publicConsole(on)
	}
	h, err := httpd.New(on.ln, c)
	if err != nil {
		return server{}, err
	}
	return server{serve: h.Serve, stop: h.Shutdown, leave: h.Leave, stats: func() connections {
		return connections{h.Connections(), h.Refused()}
	}}, nil
}

func openGRPC(a *App, on seat) (server, error) {
	c := grpcd.Config{
		Access: on.access, Formats: &a.opaque.formats, Times: on.times, Cluster: a.cluster.get, Ready: a.ready, TLS: a.secure, MaxConns: on.conns, RequestIDs: a.accessLog.Load, Logger: a.log,
	}
	if a.order != nil {
		c.Route, c.RouteEntity, c.Forwarded = a.order.route, a.order.routeEntity, a.forwardedLog()
	}
	g, err := grpcd.New(on.ln, c)
	if err != nil {
		return server{}, err
	}
	return server{serve: g.Serve, stop: g.Shutdown, stats: func() connections {
		return connections{int64(g.Connections()), g.Refused()}
	}}, nil
}

func openRESP(a *App, on seat) (server, error) {
	r, err := respd.New(on.ln, respd.Config{
		Access: on.access, Formats: &a.opaque.formats, TLS: a.secure, Version: a.opts.Version, Times: on.times,
		MaxConns: on.conns, IdleTimeout: a.cfg.RESP.IdleTimeout, Logger: a.log,
	})
	if err != nil {
		return server{}, err
	}
	return server{serve: r.Serve, stop: r.Shutdown, stats: func() connections {
		st := r.Stats()
		return connections{st.Connections, st.Refused}
	}, sample: func(to samples) {
		st := r.Stats()
		to.counter("leaf_resp_connections_accepted_total", "Connections that it accepted.", st.Accepted)
		to.counter("leaf_resp_commands_total", "Commands that it carried out, whatever the outcome.", st.Commands)
		to.counter("leaf_resp_errors_total", "Commands that it answered with an error.", st.Errors)
	}}, nil
}
