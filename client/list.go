package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
)

const (
	// listTimeout bounds one call of the Resolver.
	listTimeout = 5 * time.Second

	// fileAfter is how long the first call may take if there is a list on disk: a
	// registry that does not answer must not use up the first callers' time.
	fileAfter = 300 * time.Millisecond

	// firstRefresh is how soon a list is asked for again while there is none.
	firstRefresh = 200 * time.Millisecond
)

// follow keeps the list of nodes until ctx ends.
func (c *Client) follow(ctx context.Context) {
	var last []discovery.Node // as it came from the Resolver
	usable := false           // it names a node that can be
	failing, known := false, false
	timeout := listTimeout
	if c.nodeFile != "" {
		timeout = fileAfter
	}
	for ; ctx.Err() == nil; timeout = listTimeout {
		nodes, err := c.list(ctx, timeout)
		if ctx.Err() != nil {
			return
		}
		if err == nil && !reflect.DeepEqual(nodes, last) {
			last = slices.Clone(nodes)
			if usable = c.apply(ctx, nodes) > 0; usable {
				c.save(nodes)
			}
		}
		switch {
		case err != nil || !usable:
			if !failing {
				c.log.add(slog.LevelWarn, "the resolver gives no list with a node that can be used; the client goes on with the last one", "err", err)
			}
			failing = true
			if !known {
				known = c.remember(ctx)
			}
		default:
			if failing {
				c.log.add(slog.LevelInfo, "the list of nodes is back", "nodes", len(nodes))
			}
			failing, known = false, true
		}
		pause := c.refresh
		if !known {
			pause = min(pause, firstRefresh)
		}
		c.sweepLanes(c.rt.Now())
		if c.rt.Wait(ctx, nil, c.rt.Jitter(pause)) != nil {
			return
		}
	}
}

func (c *Client) list(ctx context.Context, timeout time.Duration) ([]discovery.Node, error) {
	bounded, cancel := c.rt.WithTimeout(ctx, timeout)
	defer cancel()
	return c.resolver.List(bounded)
}

// remember uses the list on disk.
func (c *Client) remember(ctx context.Context) bool {
	if c.nodeFile == "" {
		return false
	}
	nodes, err := readNodes(c.nodeFile)
	if err != nil {
		c.log.add(slog.LevelWarn, "the node file is of no use", "err", err)
		return false
	}
	c.log.add(slog.LevelInfo, "using the list of nodes of the last run", "file", c.nodeFile, "nodes", len(nodes))
	return c.apply(ctx, nodes) > 0
}

func (c *Client) save(nodes []discovery.Node) {
	if c.nodeFile == "" {
		return
	}
	if err := writeNodes(c.nodeFile, nodes); err != nil {
		c.log.add(slog.LevelWarn, "the node file could not be written", "err", err)
	}
}

// apply makes the list current and returns how many nodes of it can be used. Nodes that
// stay keep their connection and health; a new weight counts for the next request.
func (c *Client) apply(ctx context.Context, list []discovery.Node) int {
	before := *c.nodes.list.Load()
	byKey := make(map[string]*node, len(before))
	for _, n := range before {
		byKey[n.key] = n
	}
	now := make([]*node, 0, len(list))
	others := int64(0)
	defer func() { c.stats.others.Store(others) }()
	for _, info := range list {
		key := info.ID + " " + info.GRPC
		if slices.ContainsFunc(now, func(n *node) bool { return n.key == key }) {
			continue
		}
		if info.GRPC == "" {
			continue // it serves other protocols
		}
		err := errors.Join(checkNode(info), c.checkHost(info))
		if err == nil {
			if err = c.cluster.admit(info.Cluster); err != nil {
				others++
			}
		}
		if err != nil {
			c.log.add(slog.LevelWarn, "a node of the list is of no use", "node", info.ID, "err", err)
			continue
		}
		n := byKey[key]
		if n == nil {
			var err error
			if n, err = c.connect(ctx, key, info, len(before) > 0); err != nil {
				c.log.add(slog.LevelWarn, "a node of the list is of no use", "node", info.ID, "err", err)
				continue
			}
		}
		delete(byKey, key)
		n.info.Store(&info)
		now = append(now, n)
	}
	if len(now) == 0 {
		return 0 // a list of nothing usable is as good as none
	}
	slices.SortFunc(now, func(a, b *node) int { return cmp.Compare(a.key, b.key) })
	c.nodes.list.Store(&now)
	for _, gone := range byKey {
		gone.stop()
	}
	return len(now)
}

// connect makes a node of the list known. late: others were there before it.
func (c *Client) connect(ctx context.Context, key string, info discovery.Node, late bool) (*node, error) {
	l, err := c.dial(info)
	if err != nil {
		return nil, err
	}
	listed, stop := context.WithCancel(ctx)
	n := &node{key: key, rt: c.rt, log: c.log, link: l, kick: make(chan struct{}, 1), stop: stop}
	n.info.Store(&info)
	if late {
		n.warm = c.rt.Now()
	}
	if !c.tasks.start(c.rt, func() { n.watch(ctx, listed) }) {
		stop()
		l.Close()
	}
	return n, nil
}
