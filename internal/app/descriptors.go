package app

import (
	"fmt"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"
)

// A process has one limit of open files for everything, and a public connection needs no
// token. So the public listeners share what is left once the parts of a node that IDs rest
// on have theirs: files, databases, registries, administration.
const (
	ownFiles     = 64 // data directory, listeners, registry, cluster fence, alarms, peers
	refusedConns = 64 // per public listener, being told that there is no room
	leastConns   = 16 // per public listener, however low the limit is
	adminConns   = 1000
)

// connections are the bounds of the listeners that clients reach.
type connections struct{ http, grpc, resp, admin int64 }

// asked returns what c wants; a server that is off wants nothing.
func asked(c config.Config) connections {
	n := connections{http: c.HTTP.MaxConns, grpc: c.GRPC.MaxConns, resp: c.RESP.MaxConns, admin: adminConns}
	if c.GRPCAddr() == config.AddrOff {
		n.grpc = 0
	}
	if c.RESPAddr() == config.AddrOff {
		n.resp = 0
	}
	return n
}

// reserve returns how many descriptors are no connections of clients.
func reserve(c config.Config) int64 {
	stores := max(len(c.Stores), 1)
	return ownFiles + int64(stores)*(c.Segment.MaxLoads+spareConns) + 3*refusedConns
}

// within returns bounds that fit into a limit of open files, each public one in proportion
// to what it wants. 0: there is no limit.
func (n connections) within(files uint64, reserve int64) connections {
	public := n.http + n.grpc + n.resp
	if files == 0 || files >= uint64(public+n.admin+reserve) {
		return n
	}
	admin := min(n.admin, max(int64(files)/8, leastConns))
	room := max(int64(files)-reserve-admin, 0)
	share := func(want int64) int64 { return min(want, max(want*room/public, leastConns)) }
	return connections{http: share(n.http), grpc: share(n.grpc), resp: share(n.resp), admin: admin}
}

// boundConnections returns the bounds of the configuration, lowered to what the limit of
// open files allows.
func (a *App) boundConnections() connections {
	return asked(a.cfg).within(a.opts.openFiles(), reserve(a.cfg))
}

// logConnections says which bounds were lowered: a warning for those that somebody has
// set, and a piece of information for the defaults, which are meant to be high.
func (a *App) logConnections() {
	asked := asked(a.cfg)
	var set, defaults []string
	for _, b := range []struct {
		key     string
		is, was int64
	}{{"http.max-conns", a.conns.http, asked.http}, {"grpc.max-conns", a.conns.grpc, asked.grpc}, {"resp.max-conns", a.conns.resp, asked.resp}, {"administration", a.conns.admin, asked.admin}} {
		text := fmt.Sprintf("%s=%d instead of %d", b.key, b.is, b.was)
		switch {
		case b.is == b.was:
		case a.opts.IsSet(b.key):
			set = append(set, text)
		default:
			defaults = append(defaults, text)
		}
	}
	const text = "the limit of open files lowers the limits of connections, so that files, databases and administration keep theirs"
	args := func(lowered []string) []any {
		return []any{
			"limit", a.opts.openFiles(), "lowered", strings.Join(lowered, ", "),
			"do", fmt.Sprintf("raise the limit (ulimit -n, LimitNOFILE=) to %d, or lower the three keys", asked.http+asked.grpc+asked.resp+asked.admin+reserve(a.cfg)),
		}
	}
	if len(set) > 0 {
		a.log.Warn(text, args(set)...)
	}
	if len(defaults) > 0 {
		a.log.Info(text, args(defaults)...)
	}
}
