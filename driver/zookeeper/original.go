package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// Original is the registry in the layout of the Java server. A number belongs to an
// ip:port; numbers are not reused. Use NewOriginal. All methods are safe for
// concurrent use. Beside a Java server it takes no layout but that of the Java server, [snowflake.Leaf]: IDs of two layouts can
// be equal.
//
// An identity has an owner node, named by its ip:port, in which the process that
// claims it puts its nonce before it creates or adopts a child of forever, and whose
// state after our last write it remembers. A child in any other state was written
// by another process, which can only be a Java server:
//
//   - its timestamp counts as 10 s later (rule J), and
//   - it is watched before it is taken; a write meanwhile is ErrTaken (rule I).
//
// If several children have one ip:port, the one that the owner node names is taken,
// else that with the lowest number of the range. Any of them is safe, since each has
// a T of its own. (Java takes whichever the server lists last.)
//
// A claim leaves an ephemeral node, so that a second process with the same ip:port
// is ErrTaken as long as the first one has a session; the process that follows it in
// its data directory is not.
type Original struct {
	*conn

	root string // /snowflake/<name>, below the chroot

	mu       sync.Mutex
	watching map[string]watched // by path of a child
}

// watched is the state in which this process first saw a child that is not ours.
type watched struct {
	czxid   int64
	version int32
	since   time.Time
}

var _ worker.Registry = (*Original)(nil)

// javaLag is how much later than its timestamp a Java node may have issued. It
// reports every 3 s, and only the past.
const javaLag = 10_000 // ms

// javaSilent is how long after its last write a Java server counts as running.
const javaSilent = 60_000 // ms

// NewOriginal returns a registry that connects with its first call. An error is
// leaf.ErrBadRequest.
func NewOriginal(cfg Config) (*Original, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Original{
		conn: newConn(cfg), root: cfg.Chroot + "/snowflake/" + cfg.Name, watching: map[string]watched{},
	}, nil
}

// Info implements worker.Registry.
func (o *Original) Info() worker.Info {
	return worker.Info{
		Name: "zookeeper", Kind: worker.Fixed, Shared: true, Place: o.root, Servers: strings.Join(o.cfg.Servers, ","),
		Reset: deleteAll(o.namespace()),
	}
}

func (o *Original) namespace() string               { return o.root + "/leaf_namespace" }
func (o *Original) forever() string                 { return o.root + "/forever" }
func (o *Original) owners() string                  { return o.root + "/leaf_owner" }
func (o *Original) temporary() string               { return o.root + "/leaf_temporary" }
func (o *Original) ownerPath(address string) string { return o.owners() + "/" + address }
func (o *Original) present(address string) string   { return o.temporary() + "/" + address }

func (o *Original) childPath(name string) string { return o.forever() + "/" + name }

// Init implements worker.Registry.
func (o *Original) Init(ctx context.Context, ns worker.Namespace) error {
	_, err := o.open(ctx, ns, nil)
	return err
}

// open returns the namespace, and creates it if there is none. It refuses a namespace
// with another name or fingerprint. A namespace belongs to one forever node: if that was
// deleted, ZooKeeper counts from 0 again, and the next claim makes fresh numbers wait as
// in a new namespace. Without a claim, open declares the namespace new, which changes
// nothing if there is one, or if an owner node proves that there was one, or a child that the
// registry was used.
//
// When only Java servers have used the registry, no operator has declared the namespace.
// A wipe would have deleted forever too, so it can only have happened before forever was
// created: fresh numbers wait from that moment, by the clock of the ZooKeeper servers,
// and the wait is mostly over. But the registry may also be an old backup, whose forever is
// older than what was lost. An owner node proves that a namespace existed, and so does the
// last claim of the claimer; and a backup of before the first Go node has no child that a
// running Java server writes. In these cases fresh numbers wait from now. A backup beside
// Java servers that run looks like a registry that only they have used.
//
// The request that creates a namespace may be minutes on its way, and others may have used
// and lost one meanwhile. So a claim creates it as that of no forever node, and the first
// claim that reads it, mostly the same one, makes it that of the node, with another wait.
func (o *Original) open(ctx context.Context, ns worker.Namespace, claim *worker.Request) (*namespace, error) {
	if err := o.admitJava(ctx, ns.Fingerprint); err != nil {
		return nil, err
	}
	p := o.namespace()
	for {
		stored, err := o.readNamespace(ctx, p) // before the look at the other kind
		if err != nil {
			return nil, err
		}
		issueFrom, err := o.supersede(ctx, o.pool())
		if err != nil {
			return nil, err
		}
		if stored != nil {
			if err := stored.Admit(ns); err != nil || claim == nil {
				return stored, err
			}
			switch _, err := o.guarded(ctx, stored); { // whatever is written below expects it
			case errors.Is(err, errMoved):
				continue
			case err != nil:
				return nil, err
			}
		}
		forever, err := o.get(ctx, o.forever())
		switch {
		case err != nil:
			return nil, err
		case stored != nil && forever != nil && stored.forever == forever.stat.Czxid:
			if issueFrom = max(issueFrom, stored.lost(claim)); stored.IssueFrom >= issueFrom {
				return stored, nil
			}
			if err := o.postpone(ctx, p, stored, issueFrom); err != nil && !errors.Is(err, errMoved) {
				return nil, err
			}
			continue
		case forever == nil || stored == nil:
			if err := o.ensureAll(ctx, o.forever(), o.owners(), o.temporary()); err != nil {
				return nil, err
			}
			if forever == nil {
				continue
			}
		}
		owners, err := o.children(ctx, o.owners())
		if err != nil || claim == nil && (len(owners) > 0 || forever.stat.NumChildren > 0) {
			return nil, err
		}
		fresh := worker.StoredNamespace{Namespace: ns}
		if claim != nil {
			fresh.IssueFrom = claim.QuietNew()
		}
		if unseen := stored == nil || stored.forever == noForever; unseen && fresh.IssueFrom > 0 && forever.stat.NumChildren > 0 {
			running := false
			if len(owners) == 0 && !hadNamespace(claim) {
				running, err = o.javaRuns(ctx, claim.Now)
			}
			if err != nil {
				return nil, err
			}
			if running {
				fresh.IssueFrom = min(fresh.IssueFrom, forever.stat.Ctime+claim.Quiet-claim.Now)
			}
		}
		of := forever.stat.Czxid
		switch {
		case stored != nil:
			fresh.IssueFrom = max(fresh.IssueFrom, stored.IssueFrom)
		case fresh.IssueFrom > 0:
			of = noForever
		}
		if err := o.writeNamespace(ctx, p, stored, fresh, of); err != nil && !errors.Is(err, errMoved) {
			return nil, err
		}
	}
}

// javaRuns reports whether a child of forever was written a moment ago: a Java server
// writes its own every 3 s.
func (o *Original) javaRuns(ctx context.Context, now int64) (bool, error) {
	children, err := o.children(ctx, o.forever())
	for _, name := range children {
		n, err := o.get(ctx, o.childPath(name))
		if err != nil || n != nil && n.stat.Mtime > now-javaSilent {
			return err == nil, err
		}
	}
	return false, err
}

// admitJava returns worker.ErrForeign if a Java server has a child here and IDs of
// another layout than ours. Its children are those whose address never had an owner
// node.
func (o *Original) admitJava(ctx context.Context, fingerprint string) error {
	java := snowflake.Leaf().Fingerprint()
	if fingerprint == java {
		return nil
	}
	children, err := o.children(ctx, o.forever())
	if err != nil || len(children) == 0 {
		return err
	}
	owners, err := o.children(ctx, o.owners())
	if err != nil {
		return err
	}
	for _, name := range children {
		if address, _, ok := parseChild(name); ok && !slices.Contains(owners, address) {
			return fmt.Errorf("%w: %s is a Java server's, whose IDs have the layout %q, this node's %q; IDs of two layouts or epochs can be equal. If the program of the Java servers sets another epoch, do as rule 2 of docs/MIGRATION.md#snowflake-mode-on-the-originals-zookeeper-path says; "+
				"otherwise set the layout back, or give this node another name, and its IDs tables of their own",
				worker.ErrForeign, o.childPath(name), java, fingerprint)
		}
	}
	return nil
}

// owner is an owner node.
type owner struct {
	ownerRecord

	path   string
	node   *node  // nil: there is none
	damage string // why it cannot be read, "" if it can; only listOwners returns such
}

// readOwner returns the owner node of an address, with a nil node if there is none.
func (o *Original) readOwner(ctx context.Context, address string) (owner, error) {
	own := owner{path: o.ownerPath(address)}
	n, err := o.get(ctx, own.path)
	if n == nil || err != nil {
		return own, err
	}
	own.node = n
	return own, own.parse()
}

func (own *owner) parse() error {
	if err := decode(own.path, own.node.data, &own.ownerRecord); err != nil {
		return err
	}
	if own.Number < 0 || own.Floor < 0 || own.Bound < own.Floor && own.Claimed || max(own.Floor, own.Bound) > maxMoment {
		return unreadable(own.path, own.node.data, errors.New("impossible numbers"))
	}
	return nil
}

// heldBy reports whether nonce has the identity, with or without a number.
func (own *owner) heldBy(nonce string) bool {
	return own.node != nil && !own.Released && own.Nonce == nonce
}

// guard is the node that exists as long as nonce owns the identity.
func (own *owner) guard(nonce string) string { return own.path + "/" + escape(nonce) }

// wrote reports whether a child is in the state in which our last write left it.
func (own *owner) wrote(c *numbered) bool {
	return own.Node == c.name && own.NodeVersion == c.stat.Version && own.NodeCzxid == c.stat.Czxid
}

// atOnce asks the leader whether the owner node and the child were at one moment as we have read them, one after the
// other. The error is errMoved if not.
func (o *Original) atOnce(ctx context.Context, own owner, c *numbered) error {
	p := o.childPath(c.name)
	_, err := o.change(ctx, p, unchanged(own.path, own.node.stat.Version), unchanged(p, c.stat.Version))
	return err
}

// numbered is a child of forever.
type numbered struct {
	*node

	name, address string
	number        int64
	timestamp     int64
}

// readChild returns a child of forever, nil if it is not there.
func (o *Original) readChild(ctx context.Context, name string) (*numbered, error) {
	p := o.childPath(name)
	n, err := o.get(ctx, p)
	if n == nil || err != nil {
		return nil, err
	}
	c := &numbered{node: n, name: name}
	c.address, c.number, _ = parseChild(name)
	c.timestamp, err = parseTimestamp(p, n.data)
	return c, err
}

// endpointData is what Java reads of us.
func endpointData(address string, timestamp int64) ([]byte, error) {
	ip, port, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	return encode(endpoint{IP: ip, Port: port, Timestamp: timestamp}), nil
}

// replaceGuards returns the operations that make nonce's the only guard; "": none.
func (o *Original) replaceGuards(ctx context.Context, own owner, nonce string) ([]any, error) {
	names, err := o.children(ctx, own.path)
	if err != nil {
		return nil, err
	}
	var ops []any
	kept := false
	for _, name := range names {
		if nonce != "" && name == escape(nonce) {
			kept = true
			continue
		}
		ops = append(ops, remove(own.path+"/"+name, anyVersion))
	}
	switch {
	case kept:
		ops = append(ops, exists(own.guard(nonce)))
	case nonce != "":
		ops = append(ops, create(own.guard(nonce), nil))
	}
	return ops, nil
}

// Announce implements worker.Registry.
func (o *Original) Announce(ctx context.Context, p worker.Peer) error {
	if _, _, err := splitAddress(p.Address); err != nil {
		return err
	}
	return o.announce(ctx, o.present(p.Address), p)
}

// Withdraw implements worker.Registry.
func (o *Original) Withdraw(ctx context.Context, p worker.Peer) error {
	if _, _, err := splitAddress(p.Address); err != nil {
		return err
	}
	return o.withdraw(ctx, o.present(p.Address), p)
}

// Peers implements worker.Registry.
func (o *Original) Peers(ctx context.Context) ([]worker.Peer, error) {
	return o.peers(ctx, o.temporary())
}

// Close implements worker.Registry. It may be repeated.
func (o *Original) Close() error {
	o.close()
	return nil
}
