package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/uptime"
	"github.com/leaf-idgen/leaf/segment"
)

// order is this node's part in strict order: which tags it owns, and the way to the owners of the others. A
// nil order is that of a node that takes no part. Each database has the slots of its own tags, so that no tag
// waits for a database that it does not need.
type order struct {
	cfg     config.Order
	maxWait time.Duration // of a call of the engine
	router  *segment.Router
	strict  func(tag string) bool       // whether a tag is in strict order
	heard   func(tag string, end int64) // as forward.Config.Heard
	self    string                      // the address of this node for the others
	hidden  error                       // why the others do not reach it; nil: they do
	weight  func() int
	slots   []*owner.Slots // by database
	stores  []io.Closer    // the registries of slots
	peers   *forward.Peers
	log     *slog.Logger

	leaving atomic.Bool // the slots are for other nodes
	used    atomic.Bool // a tag in strict order was asked for

	issuer *forward.Issuer // in front of the engine
	here   *leaf.Issuers   // for what other nodes forward

	mu     sync.Mutex
	begun  []bool // by database
	closed bool
	starts sync.WaitGroup
	ctx    context.Context //nolint:containedctx // of starts
	cancel func()
}

var _ segment.Terms = (*order)(nil)

// openOrder prepares the node's part. It makes no call: what only tags in strict order need begins
// with the first request for one. A node without gRPC cannot be reached by the others, so it takes no part.
func (a *App) openOrder() (*order, error) {
	ln := a.listeners["grpc"]
	if ln == nil {
		return nil, nil //nolint:nilnil // as documented
	}
	self, hidden := clientAddress(a.cfg, ln.Addr(), a.opts.interfaces)
	if hidden != nil {
		self = ln.Addr().String()
	}
	o := &order{hidden: hidden, cfg: a.cfg.Order, maxWait: a.cfg.Segment.MaxWait, router: a.dbs.router, self: self, log: a.log, strict: func(tag string) bool { return a.alloc.Strict(tag) }, heard: func(tag string, end int64) { a.alloc.Heard(tag, end) }}
	o.weight = func() int {
		switch {
		case o.leaving.Load(), a.files.lostError() != nil, a.alloc.ClockMisfits(), a.alloc.Rebuilt(): // the node does not issue all of its tags any more
			return 0
		case a.presence != nil:
			return a.presence.announcer.Status().Node.Weight
		}
		return int(a.cfg.Node.Weight)
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	others, err := a.othersAuthorities(a.cfg)
	if err != nil {
		return nil, err
	}
	a.others.Store(others)
	o.peers = forward.NewPeers(a.peerTLS(), a.log)
	a.closers.add(a.withDeadline(o.close))
	for i, s := range a.dbs.stores {
		records, err := s.openSlots()
		if err != nil {
			return nil, err
		}
		o.stores = append(o.stores, records)
		database := ""
		if len(a.dbs.stores) > 1 {
			database = a.dbs.name(i)
		}
		slots, err := owner.New(records, owner.Config{
			Address: self, Namespace: orderNamespace, Database: database, Slots: int(o.cfg.Slots), Lease: o.cfg.Lease, Weight: a.weightIn(i, o.weight), Elapsed: uptime.Now,
			Logger: a.log.With("store", a.dbs.name(i)), Alarms: a.alarms,
		})
		if err != nil {
			return nil, err
		}
		o.slots, o.begun = append(o.slots, slots), append(o.begun, false)
	}
	return o, nil
}

// weightIn returns the weight of this node for the slots in a database: none where the node issues nothing because of
// another tag rule. It would keep them, and no other node could issue their tags.
func (a *App) weightIn(database int, weight func() int) func() int {
	return func() int {
		if a.alloc.Refuses(database) {
			return 0
		}
		return weight()
	}
}

// replyWithin is what the answer of an owner may need beyond the wait of its engine.
const replyWithin = 100 * time.Millisecond

// orderNamespace is the name of the slots in each database: their tables hold nothing else.
const orderNamespace = "leaf"

// peerTLS returns how this node connects to others, nil for plain TCP: as clients do, with its own certificate.
func (a *App) peerTLS() func() *tls.Config {
	if a.secure == nil {
		return nil
	}
	return func() *tls.Config {
		return &tls.Config{
			MinVersion: a.secure.MinVersion, ServerName: a.cfg.Order.ServerName, RootCAs: a.others.Load(),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil },
		}
	}
}

// Term implements segment.Terms.
func (o *order) Term(tag string) (segment.Term, error) {
	slots := o.of(tag)
	if slots == nil {
		return nil, fmt.Errorf("%w: no rule sends tag %q to a database", leaf.ErrNotReady, tag)
	}
	return slots.Term(tag)
}

// of returns the slots of the tag's database, and starts their use.
func (o *order) of(tag string) *owner.Slots {
	i := o.router.Route(tag)
	if i < 0 {
		return nil
	}
	o.begin(i)
	return o.slots[i]
}

func (o *order) begin(i int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun[i] || o.closed {
		return
	}
	o.begun[i] = true
	if !o.used.Swap(true) && o.hidden != nil {
		o.log.Warn("other nodes cannot take requests for tags in strict order to this one; set node.advertise", "reason", o.hidden)
	}
	o.starts.Go(func() {
		if err := o.slots[i].Start(o.ctx); err != nil && o.ctx.Err() == nil {
			o.log.Error("this node cannot issue tags in strict order", "error", err)
		}
	})
}

// look finds out who owns the tag now.
func (o *order) look(ctx context.Context, tag string) error {
	slots := o.of(tag)
	if slots == nil {
		return leaf.ErrNotReady
	}
	return slots.Find(ctx, tag)
}

// inFrontOf returns the issuer that clients use. local is the engine with what guards it.
// At most maxWaiting calls wait for owners at once.
func (o *order) inFrontOf(local leaf.Issuer, maxWaiting int) leaf.Issuer {
	if o == nil {
		return local
	}
	o.issuer = forward.New(forward.Config{
		Local: local, Remote: o.peers, Self: o.self, Heard: o.heard, Look: o.look, MaxWait: o.cfg.MaxWait,
		Attempt: max(o.cfg.Lease/2, o.maxWait+replyWithin), MaxWaiting: maxWaiting,
	})
	o.here = &leaf.Issuers{Segment: forward.Here(local, o.look), Snowflake: leaf.Disabled("snowflake")}
	return o.issuer
}

// setMaxWaiting replaces the bound of inFrontOf.
func (o *order) setMaxWaiting(most int) {
	if o != nil && o.issuer != nil {
		o.issuer.SetMaxWaiting(most)
	}
}

// forwarded is grpcd.Config.Forwarded.
func (o *order) forwarded(secret string) *leaf.Issuers {
	for _, s := range o.slots {
		if s.Admits(secret) {
			return o.here
		}
	}
	return nil
}

// route is grpcd.Config.Route.
func (o *order) route(tag string) (address string, epoch int64, strict bool) {
	if !o.used.Load() || !o.strict(tag) {
		return "", 0, false
	}
	return o.owner(tag)
}

// owner returns who owns a tag in strict order, as far as this node knows.
func (o *order) owner(tag string) (address string, epoch int64, known bool) {
	slots := o.of(tag)
	if slots == nil {
		return "", 0, false
	}
	r := slots.Routes()[owner.Of(tag, int(o.cfg.Slots))]
	return r.Address, r.Epoch, true
}

// giveAway gives all slots to other nodes, if there are any, before the servers of this node stop. What is not
// given in time is free when the lease has passed.
func (o *order) giveAway(ctx context.Context) {
	if o == nil || !o.used.Load() {
		return
	}
	o.leaving.Store(true)
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Lease)
	defer cancel()
	for _, s := range o.started() {
		_ = s.Look(ctx) // with the weight 0
	}
}

func (o *order) started() (out []*owner.Slots) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, s := range o.slots {
		if o.begun[i] {
			out = append(out, s)
		}
	}
	return out
}

// leaveNow is close for a stop, which goes on if it fails: the lease of this node then passes.
func (o *order) leaveNow(ctx context.Context, log *slog.Logger) {
	if o == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Lease)
	defer cancel()
	if err := o.close(ctx); err != nil {
		log.Warn("tags in strict order wait until this node's lease has passed, because they could not be given to other nodes", "error", err)
	}
}

// close ends all terms, gives the slots away and ends the connections to other nodes.
func (o *order) close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	var errs []error
	for _, s := range o.slots {
		errs = append(errs, s.Close(ctx))
	}
	o.cancel()
	o.starts.Wait()
	for _, s := range o.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, o.peers.Close())...)
}

// sample adds to the metrics what other nodes see of this one.
func (o *order) sample(s samples) {
	if o == nil || !o.used.Load() {
		return
	}
	owned := 0
	for _, slots := range o.started() {
		owned += slots.Owned()
	}
	answered, failed := o.issuer.Forwarded()
	s.gauge("leaf_order_slots", "Slots whose tags in strict order this node issues.", float64(owned))
	s.counter("leaf_order_forwarded_total", "Calls for tags in strict order that another node was to answer.", answered, "result", "ok")
	s.counter("leaf_order_forwarded_total", "Calls for tags in strict order that another node was to answer.", failed, "result", "failed")
}
