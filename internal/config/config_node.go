package config

import (
	"net"

	"github.com/leaf-idgen/leaf/discovery"
)

// Node is the section node: this node in the directory in which clients find the
// nodes of the cluster.
type Node struct {
	Zone      string `key:"zone" hint:"NAME" help:"Datacentre or the like of this node. Clients prefer the nodes of their own zone, and go elsewhere only when none of those answers."`
	Weight    int64  `key:"weight" default:"100" min:"0" max:"1000" help:"This node's share of the traffic of clients, relative to the other nodes of its zone. 0: only while no other node answers. leaf node weight changes it at run time."`
	Discovery string `key:"discovery" hint:"URL" secret:"true" help:"Where this node publishes its addresses for clients: store (the first database), etcd://HOST:PORT,…/NAME, zookeeper://HOST:PORT,…/NAME, or off. Default: the first database, unless it is an SQLite file."`
	Advertise string `key:"advertise" hint:"HOST" help:"Name or IP address by which clients reach this node. Default: the address that a server listens on, and for one that listens on all of them the one of the interface that snowflake.interface selects."`
}

// Values of node.discovery that are no URL.
const (
	DiscoveryOff   = "off"
	DiscoveryStore = "store"
)

// DiscoveryKey is the key of the directory of nodes.
const DiscoveryKey = "node.discovery"

// validate checks what the struct tags do not say.
func (c Node) validate() (errs []error) {
	if discovery.CheckZone(c.Zone) != nil {
		errs = append(errs, &Error{Key: "node.zone", Value: c.Zone, Limit: "must have up to 64 bytes of printable characters, without a space at either end"})
	}
	if c.Advertise != "" {
		n := discovery.Node{ID: "this", HTTP: net.JoinHostPort(c.Advertise, "1")}
		if n.Validate() != nil {
			errs = append(errs, &Error{Key: "node.advertise", Value: c.Advertise, Limit: "must be a host name or an IP address, without a port"})
		}
	}
	switch c.Discovery {
	case "", DiscoveryOff, DiscoveryStore:
	default:
		if _, err := ParseCoordinator(DiscoveryKey, c.Discovery, EtcdNodes); err != nil {
			errs = append(errs, &Error{Key: DiscoveryKey, Value: Redact(c.Discovery), Limit: CoordinatorForm + ", store or off"})
		}
	}
	return errs
}
