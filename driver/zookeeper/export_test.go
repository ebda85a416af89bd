package zookeeper

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// The parsers, for their tests.
var (
	ParseChild     = parseChild
	ChildName      = childName
	ParseTimestamp = parseTimestamp
	SplitAddress   = splitAddress
	Escape         = escape
	ParseVersions  = func(text string) (string, bool) { v, ok := parseVersions(text); return v.String(), ok }
	ParseBound     = parseBound
	ParseEntry     = parseEntry
	ParsePool      = func(text string) (string, error) { v, err := parsePoolVersion(text); return v.String(), err }
)

// SetAdoptWatch sets how long an Original watches a child before it adopts it.
func (c *Config) SetAdoptWatch(d time.Duration) { c.adoptWatch = d }

// Records are the kinds of data that our own nodes hold.
var Records = []string{"owner", "namespace", "presence", "claim", "fence"}

// Rewrite reads the data of a node of this kind and returns it as we would write it.
func Rewrite(kind, path string, data []byte) ([]byte, error) {
	record := map[string]any{
		"owner": new(ownerRecord), "namespace": new(namespaceRecord), "presence": new(presenceRecord), "claim": new(claimRecord), "fence": new(fenceRecord),
	}[kind]
	if err := decode(path, data, record); err != nil {
		return nil, err
	}
	return encode(record), nil
}

// Client is what a session asks.
type Client = client

// Ask makes sessions that ask a server of the test.
func (c *conn) Ask(open func() Client) {
	c.start = func(cfg Config) (*session, error) {
		ctx, cancel := context.WithCancel(context.Background())
		events := make(chan zk.Event)
		close(events)
		return &session{cfg: cfg, zk: open(), events: events, ctx: ctx, cancel: cancel, ready: true, changed: make(chan struct{})}, nil
	}
}

// Panic makes a call in which the client panics.
func (o *Original) Panic(ctx context.Context) error {
	_, err := call(ctx, o.conn, "read", "/", func(client) (string, error) { panic("a broken reply") })
	return err
}
