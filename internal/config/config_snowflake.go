package config

import "time"

// Snowflake is the section snowflake.
type Snowflake struct {
	Enable bool `key:"enable" default:"true" help:"Serve snowflake mode."`

	Layout     string   `key:"layout" default:"leaf" hint:"LAYOUT" help:"Bits of an ID: leaf, dc, seconds, js53, or fields such as leaf,epoch=1700000000000. All nodes of a registry need the same, and IDs of two layouts can be equal: never change it in place. leaf decode --layout shows them."`
	Layouts    []string `key:"layouts" hint:"LAYOUT" help:"Further layouts, such as js53: a request of snowflake mode whose key is one of these texts gets an ID of that layout, with the same worker ID. The same list on all nodes. The worker ID fits all layouts, so there are as many as the narrowest has. Repeatable."`
	Datacenter int64    `key:"datacenter" default:"-1" min:"-1" max:"4194303" help:"This node's datacentre: needed if the layout has that field. Every datacentre then has a registry or name of its own. -1: none."`

	Registry  string   `key:"registry" default:"auto" oneof:"auto sql zookeeper zookeeper-recycle etcd static" hint:"KIND" help:"Where worker IDs are claimed. auto: sql, in the first database, or etcd, if the store is there. static: the number is configured and Leaf does not check that it is given to one node only."`
	Addresses []string `key:"registry-address" hint:"ADDRESS" secret:"true" help:"Servers of the registry: HOST:PORT of ZooKeeper, HOST:PORT or URL of etcd, one database URL for sql. Repeatable. Default for sql: the first database."`
	Name      string   `key:"name" default:"leaf" hint:"NAME" help:"Part of the path or prefix in ZooKeeper and etcd, so that several services share one: /snowflake/NAME/forever is the original's path, NAME its leaf.name."`
	Namespace string   `key:"namespace" default:"default" hint:"NAME" help:"Label of the environment, such as prod. A registry that carries another one is refused."`
	Standby   bool     `key:"standby" default:"false" help:"If another process holds this node's identity, or no number is free, wait for it without a complaint: the second node of a pair. Both need one registry, which static and the embedded database are not, nor an SQLite file on two machines."`

	WorkerRange  string   `key:"worker-range" hint:"FIRST-LAST" help:"Worker IDs that this node may use, such as 0-511, so that two datacentres cannot meet. Default: all of the layout."`
	WorkerID     string   `key:"worker-id" hint:"N" help:"For static: the worker ID of this node."`
	WorkerMap    []string `key:"worker-map" hint:"IP:PORT=N" help:"For static: worker IDs by advertised address, the same list on every node. Repeatable."`
	FromHostname bool     `key:"worker-from-hostname" default:"false" help:"For static: the number at the end of the host name, after a hyphen, as a Kubernetes StatefulSet gives it, plus worker-offset."`
	WorkerOffset int64    `key:"worker-offset" default:"0" min:"-4194303" max:"4194303" help:"Added to the number in the host name."`

	Address    string   `key:"address" hint:"IP:PORT" help:"This node's identity in a shared registry, which other nodes must be able to reach for the comparison of clocks. IP or :PORT alone set one half. Default: detected IP, port of http.addr."`
	Interfaces []string `key:"interface" hint:"NAME" help:"Network interfaces whose address is taken, such as eth0 or en*, the first one that has any. Repeatable. Default: any that is up and no bridge for containers."`
	Force      bool     `key:"force-address" default:"false" help:"Accept an address that other machines cannot reach or may share: loopback, link-local, of a container bridge."`

	Lease   time.Duration `key:"lease" default:"15s" min:"1s" max:"10m" help:"How long a node that is not heard of counts as alive."`
	Renew   time.Duration `key:"renew-interval" default:"3s" min:"100ms" max:"1m" help:"How often the claim and its time bound are renewed."`
	Horizon time.Duration `key:"horizon" default:"0s" min:"0s" max:"24h" help:"How far ahead the time bound in the registry is set: an outage of the registry is ridden out for that long, and a successor of a crashed node waits that long. 0: 10m."`
	Margin  time.Duration `key:"margin" default:"5s" min:"100ms" max:"10m" help:"How far the clocks of the nodes may be apart."`
	Release bool          `key:"release-on-stop" default:"true" help:"At a clean stop, release the worker ID, and the time that was reserved but not used."`

	Tolerance   time.Duration `key:"clock-tolerance" default:"5ms" min:"0s" max:"1s" help:"A step back of the clock up to this is waited out, a longer one is an error until the clock has caught up."`
	ClockPolicy string        `key:"clock-policy" default:"refuse" oneof:"refuse use-reserved" hint:"POLICY" help:"After a longer step back: refuse, or use the time that was reserved before it."`
	ClockJump   time.Duration `key:"clock-jump" default:"10s" min:"3s" max:"1h" help:"A clock that runs ahead of elapsed time by more than this is not believed until other nodes or leaf worker confirm-clock confirm it, or it has stood for about as long as it is wide and no other node objects."`

	PeerThreshold time.Duration `key:"peer-threshold" default:"5s" min:"10ms" max:"1h" help:"How far the clock may be from the median of the other nodes' clocks."`
	PeerTimeout   time.Duration `key:"peer-timeout" default:"1s" min:"10ms" max:"30s" help:"Deadline for asking a node for its time."`
	PeerInterval  time.Duration `key:"peer-interval" default:"1m" min:"1s" max:"1h" help:"How often the other nodes are asked again."`
	PeerPolicy    string        `key:"peer-policy" default:"start" oneof:"start refuse" hint:"POLICY" help:"If there are other nodes and none answers, or the registry does not list them: start, or refuse to issue."`
}

// Kinds of registries, the words of snowflake.registry.
const (
	RegistryAuto             = "auto"
	RegistrySQL              = "sql"
	RegistryZooKeeper        = "zookeeper"
	RegistryZooKeeperRecycle = "zookeeper-recycle"
	RegistryEtcd             = "etcd"
	RegistryStatic           = "static"
)

// Alarm is the section alarm.
type Alarm struct {
	Webhook string        `key:"webhook" hint:"URL" secret:"path" help:"Every alarm is sent there as JSON with POST, when it begins and when it ends. It is also in the log, in /readyz and in /metrics."`
	Timeout time.Duration `key:"timeout" default:"5s" min:"100ms" max:"1m" help:"Deadline of one attempt to send an alarm."`
}

// UsesStores reports whether worker IDs are claimed in the first store.
func (c Snowflake) UsesStores() bool {
	return c.Registry == RegistryAuto || c.Registry == RegistrySQL && len(c.Addresses) == 0
}
