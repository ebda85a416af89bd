package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// opener is a command that opens what it works on.
type opener interface {
	open(ctx context.Context, p Process) (b manage.Backend, done func() error, err error)
}

// asker is a command that asks for one operation.
type asker interface {
	opener
	json() bool
}

type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON; 64-bit numbers are strings."`
}

func (f jsonFlag) json() bool { return f.JSON }

// smallJSONFlag is jsonFlag without 64-bit numbers.
type smallJSONFlag struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (f smallJSONFlag) json() bool { return f.JSON }

// storeFlags are the flags of a command that needs the running node, or the opened stores.
type storeFlags struct {
	Settings settings `embed:"" keys:"store"`
}

func (f *storeFlags) open(ctx context.Context, p Process) (manage.Backend, func() error, error) {
	return open(ctx, p, &f.Settings, app.Stores, "store", "store-file")
}

// registryFlags are storeFlags for a registry of worker IDs.
type registryFlags struct {
	Settings settings `embed:"" keys:"registry"`
}

func (f *registryFlags) open(ctx context.Context, p Process) (manage.Backend, func() error, error) {
	return open(ctx, p, &f.Settings, app.Registry)
}

// directoryFlags are storeFlags for a directory of nodes.
type directoryFlags struct {
	Settings settings `embed:"" keys:"directory"`
}

func (f *directoryFlags) open(ctx context.Context, p Process) (manage.Backend, func() error, error) {
	return open(ctx, p, &f.Settings, app.Directory)
}

// nodeFlags are the flags of a command that needs a running node.
type nodeFlags struct {
	Settings settings `embed:"" keys:"node"`
}

func (f *nodeFlags) open(ctx context.Context, p Process) (manage.Backend, func() error, error) {
	return open(ctx, p, &f.Settings, nil)
}

// open opens what a command works on: the node at the endpoint if one is set. Otherwise a flag
// of one of direct's keys, by default any but --data-dir, asks for what is opened without a
// node in any case, beside a running node, too.
func open(ctx context.Context, p Process, s *settings, without app.Without, direct ...string) (manage.Backend, func() error, error) {
	l, err := s.load(p)
	if err != nil {
		return nil, nil, err
	}
	return openLoaded(ctx, p, l, s.values(), without, direct...)
}

// openLoaded is open with what was loaded, and the flags that were given.
func openLoaded(ctx context.Context, p Process, l *config.Loaded, given map[string][]string, without app.Without, direct ...string) (manage.Backend, func() error, error) {
	if err := checkEndpoint(l, given); err != nil {
		return nil, nil, err
	}
	if l.Endpoint != "" {
		return app.OpenEndpoint(l)
	}
	named := false
	for key := range given {
		named = named || slices.Contains(direct, key) || direct == nil && key != "data-dir"
	}
	return app.Open(ctx, l.Config, app.Options{Version: version(), Warn: p.warn, NoEmbedded: l.EmptyStore(p.Environ)}, named, without)
}

// checkEndpoint refuses flags that contradict each other about what the command works on: a
// change must not arrive at another node than the one that its user means.
func checkEndpoint(l *config.Loaded, given map[string][]string) error {
	if l.Endpoint == "" {
		if file := given[tokenFileKey]; file != nil {
			return &config.Error{Key: tokenFileKey, Value: file[0], Limit: "is for --endpoint, and none is set: a node of this machine is asked through its data directory, without a token"}
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if remoteHelp[key] == "" {
			return &config.Error{Key: "endpoint", Value: l.Endpoint, Source: l.From("endpoint"), Limit: "asks a node that knows its own data, so leave out --" + config.Key{Name: key}.Flag() + "; or leave out the endpoint to work on that"}
		}
	}
	return nil
}

// with calls f with what a command works on.
func with(ctx context.Context, p Process, c opener, f func(manage.Backend) error) error {
	b, done, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	err = f(b)
	switch ending := done(); {
	case err != nil:
		return errors.Join(err, ending)
	case ending != nil:
		// The command itself was done: what follows can only lose unused IDs.
		p.warn(ending.Error())
	}
	return nil
}

// ask asks for one operation and prints its reply.
func ask[Part, Reply any](ctx context.Context, p Process, c asker, request manage.Request[Part, Reply], text func(io.Writer, Reply) error) error {
	return with(ctx, p, c, func(b manage.Backend) error {
		reply, err := manage.Ask(ctx, b, request)
		switch {
		case err != nil:
			return err
		case c.json():
			return printJSON(p.Stdout, reply)
		}
		return text(p.Stdout, reply)
	})
}

// tell asks for one operation that answers nothing, and prints that it was done: in JSON, or as
// text.
func tell[Part any](ctx context.Context, p Process, c asker, request manage.Request[Part, manage.None], done map[string]any, text string) error {
	return with(ctx, p, c, func(b manage.Backend) error {
		if err := manage.Tell(ctx, b, request); err != nil {
			return err
		}
		if c.json() {
			return printJSON(p.Stdout, done)
		}
		_, err := fmt.Fprintln(p.Stdout, text)
		return err
	})
}
