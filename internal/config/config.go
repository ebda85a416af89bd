package config

import "time"

// Config is the configuration of a node. The struct tags of its fields are the
// one definition of every key: name, default, limits and meaning. Flags,
// environment variables, the YAML form and docs/CONFIGURATION.md are derived from
// them (see [Keys]).
//
// Tags: key is the name, in a section the part after the dot; default is written
// as a user would write it; min and max bound numbers and durations; oneof lists
// the words that are allowed; hint stands for the value in help texts; help is for
// people; secret values are printed without passwords ("true"), without all that
// follows the host ("path"), or not at all ("all"); command marks what only commands
// read; title is the heading above a section, or above one key.
//
// A zero Config is not valid. Start from [Default] or [Load].
type Config struct {
	DataDir         string        `key:"data-dir" hint:"DIR" help:"Folder of this node's own files: lock, fence, worker ID, admin socket and, without --store, the SQLite database. One running node per folder; not on a network file system. Default: $XDG_DATA_HOME/leaf, else ~/.local/share/leaf (macOS: ~/Library/Application Support/leaf, Windows: %LocalAppData%\\leaf)."`
	Stores          []string      `key:"store" hint:"URL" secret:"true" help:"Database with the table leaf_alloc: mysql://user:password@host:3306/db, postgres://user:password@host:5432/db or sqlite:PATH. Several databases: repeat as NAME=URL. Or etcd, as the only store: etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS). Default: sqlite, leaf.db in the data directory."`
	StorePrivate    bool          `key:"store-private" default:"false" help:"The embedded database is meant to be this node's alone, or an SQLite file this machine's, although the node shares a registry or directory with other nodes: each node, or machine, then has its own tags, its own worker IDs if that database gives them, and its own cluster fence, if any. Its numbers are those of its neighbours."`
	TagRules        []string      `key:"tag-rule" hint:"PATTERN=NAME" help:"Which database holds which tags, if there are several: an exact tag, or a prefix that ends in *. PATTERN=NAME,NAME*BLOCK puts a tag into several databases at once: docs/MASTERS.md. Repeatable, the first match wins."`
	ConnectTimeout  time.Duration `key:"store-connect-timeout" default:"250ms" min:"10ms" max:"10s" help:"Longest wait of a call for a connection to a database to be opened."`
	ShutdownTimeout time.Duration `key:"shutdown-timeout" default:"10s" min:"100ms" max:"5m" help:"Longest time for a clean stop: finish requests, return unused IDs. What is not done by then is cut off, which loses IDs but repeats none."`
	DrainDelay      time.Duration `key:"drain-delay" default:"0s" min:"0s" max:"10m" help:"At a stop, how long the node goes on serving after it said that it is not ready and left the list of nodes, so that clients and load balancers move first. leaf drain has a flag of its own."`
	ReloadInterval  time.Duration `key:"reload-interval" default:"2s" min:"0s" max:"1h" help:"How often the node looks whether its configuration file, or a file that its configuration names, has changed. When two looks see the same change, it reads the configuration again, as with leaf reload. 0s: it never looks."`
	HTTP            HTTP          `key:"http" title:"HTTP server"`
	GRPC            GRPC          `key:"grpc" title:"gRPC server"`
	RESP            RESP          `key:"resp" title:"Redis protocol server"`
	Node            Node          `key:"node" title:"Directory of nodes"`

	// How a command reaches a node of another machine. A node does not read these.
	Endpoint           string `key:"endpoint" title:"Administration" command:"true" hint:"URL" help:"For commands, not for leaf serve: ask the node whose admin.addr is there, https://HOST:8081, and nothing else. http:// only for 127.0.0.1, [::1] and localhost. Needs a token: --admin-token-file. Proxies of the environment are not used."`
	EndpointCA         string `key:"endpoint-ca" title:"Administration" command:"true" hint:"FILE" help:"For commands: certificates (PEM) of the authorities that may have signed the certificate of the endpoint; a self-signed one itself. Default: those that the system trusts."`
	EndpointServerName string `key:"endpoint-server-name" title:"Administration" command:"true" hint:"HOST" help:"For commands: the name that the certificate of the endpoint must be for, where it is not the host of the endpoint."`

	Admin     Admin     `key:"admin" title:"Administration"`
	Auth      Auth      `key:"auth" title:"Authentication"`
	TLS       TLS       `key:"tls" title:"TLS"`
	Segment   Segment   `key:"segment" title:"Segment mode"`
	Order     Order     `key:"order" title:"Strict order"`
	Snowflake Snowflake `key:"snowflake" title:"Snowflake mode"`
	Opaque    Opaque    `key:"opaque" title:"Opaque IDs"`
	Limit     Limit     `key:"limit" title:"Limits"`
	Audit     Audit     `key:"audit" title:"Audit log"`
	Alarm     Alarm     `key:"alarm" title:"Alarms"`
	Metrics   Metrics   `key:"metrics" title:"Metrics"`
	Trace     Trace     `key:"trace" title:"Traces"`
	Log       Log       `key:"log" title:"Log"`
}

// HTTP is the section http.
type HTTP struct {
	Addr          string        `key:"addr" default:"127.0.0.1:8080" hint:"HOST:PORT" help:"Address to listen on. Port 0 takes a free one; an empty host listens on all interfaces."`
	MaxConns      int64         `key:"max-conns" default:"10000" min:"1" max:"1000000" help:"Most connections at once. One more is told 503 and closed."`
	HeaderTimeout time.Duration `key:"header-timeout" default:"5s" min:"100ms" max:"1m" help:"Longest time from the first byte of a request to the end of its head."`
	IdleTimeout   time.Duration `key:"idle-timeout" default:"2m" min:"1s" max:"1h" help:"How long a connection may stay open without a request."`
	Console       bool          `key:"console" default:"false" help:"Show the console at /console/ of this port, too: without actions, and for clients with a value of auth.token, if that is set. The port for administration has it in any case."`
}

// Segment is the section segment.
type Segment struct {
	Enable       bool          `key:"enable" default:"true" help:"Serve segment mode."`
	MaxWait      time.Duration `key:"max-wait" default:"1s" min:"1ms" max:"1m" help:"Longest time a request waits for a range from the database. Then it gets an error that says retry."`
	LoadTimeout  time.Duration `key:"load-timeout" default:"2s" min:"10ms" max:"1m" help:"Deadline of one call to the database."`
	MaxLoads     int64         `key:"max-loads" default:"16" min:"1" max:"1000" help:"Most calls to a database at once, per database."`
	SyncInterval time.Duration `key:"sync-interval" default:"1m" min:"100ms" max:"1h" help:"How often the list of tags is read, so that new, changed and deleted rows count. A tag asked for is looked up at once."`
	MaxStep      int64         `key:"max-step" default:"1000000" min:"1" max:"1073741824" help:"Longest range that the dynamic step chooses by itself. A row's own step may be larger."`
	FixedStep    bool          `key:"fixed-step" default:"false" help:"Every range is as long as its row's step says. Default: the length follows the demand."`
	ReturnUnused bool          `key:"return-unused" default:"true" help:"At a clean stop, return the unused end of each range to the database. Turn it off behind a proxy that repeats statements."`
	Near         []string      `key:"near" hint:"NAME" help:"Of the databases of a tag that lives in several, the ones to take from first, the nearest first; the others follow in the order of tag-rule. Repeatable."`
	NegativeTTL  time.Duration `key:"negative-ttl" default:"1s" min:"1ms" max:"1m" help:"How long an unknown tag is answered without asking the database again."`

	ClusterFence string `key:"cluster-fence" hint:"URL" secret:"true" help:"A second store, beside the databases, that remembers the highest number of each tag over all nodes, so that a restored or failed-over database cannot repeat any: zookeeper://HOST:PORT,…/NAME or etcd://HOST:PORT,…/NAME. All nodes need the same."`
	FencePolicy  string `key:"fence-policy" default:"refuse" oneof:"refuse degrade" hint:"POLICY" help:"While the cluster fence does not answer: refuse takes no new range, degrade takes ranges on this node's own fence, with an alarm."`
}

// Log is the section log.
type Log struct {
	Level  string `key:"level" default:"info" oneof:"debug info warn error" hint:"LEVEL" help:"Least severe messages to print."`
	Format string `key:"format" default:"text" oneof:"text json" hint:"FORMAT" help:"Form of the log lines on standard error."`
	Access bool   `key:"access" default:"false" help:"Write a line for each request of a client at level info: protocol, client, ID of the request, mode, tag, count, time, first ID or error. A request over HTTP or gRPC that brings no X-Request-Id gets one, which its reply shows. No request waits for its line: lines that are not read in time are left out."`
}

// NeedsStores reports whether the node has any use for its databases.
func (c Config) NeedsStores() bool {
	return c.Segment.Enable || c.Snowflake.Enable && c.Snowflake.UsesStores()
}
