package app

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/leaf-idgen/leaf/internal/config"
)

// announce prints the first lines of the log.
func (a *App) announce() {
	a.log.Info("data directory", "path", a.dir.Path())
	for _, address := range a.dbs.addresses() {
		a.log.Info("store", "url", address)
	}
	url := a.scheme() + "://" + reachable(a.Addr())
	a.log.Info("listening", "url", url)
	if a.alloc != nil {
		tag := "YOUR_TAG"
		if a.dbs.embedded {
			tag = demoTag
		}
		a.log.Info("try: curl " + url + "/api/segment/get/" + tag)
	}
	if a.worker != nil {
		info := a.registry.Info()
		if info.Shared && a.selfClock() == "" {
			_, port, _ := net.SplitHostPort(a.Addr())
			a.log.Warn("other nodes cannot ask this one for its time, because http.addr does not listen on snowflake.address; its clock is not compared with theirs", "http", a.Addr(), "address", a.registry.address,
				"do", "where several machines run nodes, let it listen there: --http-addr 0.0.0.0:"+port)
		}
		// A file that is read is missed from then on (rule Q), and only a fixed number has this one.
		if text := a.cfg.Snowflake.Unstable(true); text != "" {
			if newDir, err := hasNo(a.dir, workerFile); err == nil && newDir {
				a.log.Warn(text, "address", a.registry.address)
			}
		}
		a.log.Info("worker IDs", "registry", info.Name, "kind", info.Kind, "namespace", a.cfg.Snowflake.Namespace, "address", a.registry.address)
		a.log.Info("try: curl " + url + "/api/snowflake/get/any")
	}
	for _, p := range append(protocols()[1:], protocol{section: config.SectionAdmin, name: "administration"}) {
		if addr := a.AddrOf(p.section); addr != "" {
			a.log.Info("listening", "protocol", p.name, "address", reachable(addr))
		}
	}
	a.logConnections()
	if ring := a.opaque.ring; ring != nil {
		a.log.Info("clients can ask for opaque IDs", "keys", a.cfg.Opaque.Keys, "bits", ring.Bits, "version_bits", ring.VersionBits, "issue", ring.Issue)
	}
	if a.presence != nil {
		a.log.Info("clients find this node", "directory", a.presence.where, "id", a.dir.NodeID(), "zone", a.cfg.Node.Zone, "weight", a.cfg.Node.Weight)
	}
	if key, addr := a.cfg.OpenAddress(); key != "" {
		a.log.Warn("auth.open: clients that reach this address need no token", "key", key, "address", addr)
	}
	for _, note := range a.opts.Notes {
		a.log.Info("configuration: " + note)
	}
	for _, warning := range a.opts.Warnings {
		a.log.Warn("configuration: " + warning)
	}
}

// reachable replaces the address that stands for all interfaces by one that a
// client on this machine can use.
func reachable(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || !ap.Addr().IsUnspecified() {
		return addr
	}
	return fmt.Sprintf("127.0.0.1:%d", ap.Port())
}
