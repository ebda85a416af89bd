package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/console"
)

// member is a node of the directory, with what it says of itself.
type member struct {
	manage.Node

	Servers []console.Server `json:"servers"` // the protocols that are on

	Ready *bool  `json:"ready,omitempty"` // nil: it did not answer
	Error string `json:"error,omitempty"`
}

// members is the answer about the cluster.
type members struct {
	Directory string   `json:"directory,omitempty"`
	Nodes     []member `json:"nodes"`
	More      int      `json:"more,omitempty"` // that were not asked
}

const (
	readyTime   = 2 * time.Second
	maxAsked    = 64
	askedAtOnce = 8
	maxReady    = 1 << 20 // bytes of an answer
)

// Cluster implements console.Source. It asks each node whether it is ready.
func (v view) Cluster(ctx context.Context) (any, error) {
	list, err := manage.Ask(ctx, manage.On(v.node), manage.ListNodes{})
	if err != nil {
		return nil, err
	}
	out := members{Directory: list.Directory, Nodes: make([]member, len(list.Nodes)), More: max(0, len(list.Nodes)-maxAsked)}
	slots := make(chan struct{}, askedAtOnce)
	var all sync.WaitGroup
	for i, n := range list.Nodes {
		m := &out.Nodes[i]
		m.Node = n
		for _, address := range n.Addresses() {
			if address.Value != "" {
				m.Servers = append(m.Servers, console.Server{Protocol: address.Protocol, Address: address.Value})
			}
		}
		if n.HTTP == "" || i >= maxAsked {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			if m.Ready, err = v.app.askReady(ctx, n.HTTP); err != nil {
				m.Error = err.Error()
			}
		})
	}
	all.Wait()
	if v.strangers {
		out.Directory = ""
		for i := range out.Nodes {
			out.Nodes[i].Error = ""
		}
	}
	return out, nil
}

// askReady asks another node whether one of its modes serves.
func (a *App) askReady(ctx context.Context, address string) (*bool, error) {
	scheme, secure := "http", (*tls.Config)(nil)
	if a.secure != nil {
		scheme, secure = "https", a.asPeer()
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: secure}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	var reply struct {
		Ready *bool `json:"ready"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReady)).Decode(&reply); err != nil || reply.Ready == nil {
		return nil, errors.Join(errors.New("it does not say whether it is ready"), err)
	}
	return reply.Ready, nil
}
