package client

import (
	"context"
	"errors"
	"fmt"
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

	// firstRefresh is how soon a list is asked for again while there is none. The pause
	// grows to a quarter of the time that has passed since the start.
	firstRefresh = 200 * time.Millisecond
)

// follow keeps the list of nodes until ctx ends.
func (c *Client) follow(ctx context.Context) {
	var last []discovery.Node // as it came from the Resolver
	usable := false           // it names a node that can be
	var useless error         // why it names none
	failing, known := false, false
	start := c.rt.Now()
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
			var n int
			if n, useless = c.members.apply(ctx, nodes); n > 0 {
				c.save(nodes)
			}
			usable = n > 0
		}
		switch {
		case err != nil || !usable:
			if !failing {
				c.log.add(slog.LevelWarn, "the resolver gives no list with a node that can be used; the client goes on with the last one", "error", err)
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
		var why *string
		if !known {
			why = new(whyNone(err, useless))
		}
		c.unlisted.Store(why)
		pause := c.refresh
		if !known {
			pause = min(pause, max(firstRefresh, c.rt.Now().Sub(start)/4))
		}
		c.sweepLanes(c.rt.Now())
		if c.rt.Wait(ctx, nil, c.rt.Jitter(pause)) != nil {
			return
		}
	}
}

func (c *Client) list(ctx context.Context, timeout time.Duration) (nodes []discovery.Node, err error) {
	bounded, cancel := c.rt.WithTimeout(ctx, timeout)
	defer cancel()
	err = c.guard.call("the Resolver", func() error { nodes, err = c.resolver.List(bounded); return err })
	return nodes, err
}

// remember uses the list on disk.
func (c *Client) remember(ctx context.Context) bool {
	if c.nodeFile == "" {
		return false
	}
	nodes, err := readNodes(c.nodeFile, c.cluster.get())
	if err != nil {
		c.log.add(slog.LevelWarn, "the node file is of no use", "error", err)
		return false
	}
	c.log.add(slog.LevelInfo, "using the list of nodes of the last run", "file", c.nodeFile, "nodes", len(nodes))
	n, _ := c.members.apply(ctx, nodes) // it is in the log
	return n > 0
}

// whyNone says why a list has no node that can be used: it did not come, or of its entries.
func whyNone(err, useless error) string {
	if err != nil {
		return fmt.Sprintf("the Resolver gives no list: %v", err)
	}
	return fmt.Sprintf("the list of the Resolver has no node that can be used: %v", useless)
}

// noNode says why there is no node that a call could ask; nil: there are some. Whatever comes later is more to a caller.
func (c *Client) noNode() error {
	if why := c.unlisted.Load(); why != nil {
		return &brokenError{cause: fmt.Errorf("no node is known: %s", *why)}
	}
	for _, n := range *c.nodes.list.Load() {
		if why := n.failure(); errors.Is(why, ErrOtherCluster) {
			return &brokenError{cause: why}
		}
	}
	return nil
}

func (c *Client) save(nodes []discovery.Node) {
	if c.nodeFile == "" {
		return
	}
	if err := writeNodes(c.nodeFile, c.cluster.get(), nodes); err != nil {
		c.log.add(slog.LevelWarn, "the node file could not be written", "error", err)
	}
}
