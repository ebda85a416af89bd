package app

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/trace"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// defaultStoreName is the name of the only database in its binding.
const defaultStoreName = "default"

// spareConns are the connections beyond those of the loads: for lists and for
// management commands, so that locked rows cannot keep them out. Clients may ask for pages of the
// list: whatever they ask for, lists use fewer connections than these.
const (
	spareConns = 4
	mostLists  = 1
	mostPages  = spareConns - 1 - mostLists
)

// databases are the opened stores of a configuration with their division of tags.
// No connection is made until the first call.
type databases struct {
	stores   []store // in the order of the router
	router   *segment.Router
	embedded bool   // the SQLite file in the data directory, because no store was configured
	file     string // its path

	loads []prometheus.Histogram // seconds of the loads from each store
}

// embeddedFile is the database that serves where no store is configured.
func embeddedFile(c config.Config) (path string, err error) {
	if path, err = filepath.Abs(filepath.Join(c.DataDir, "leaf.db")); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return path, nil
}

// registryURL is the database in which worker IDs are claimed.
func registryURL(c config.Config) (string, error) {
	switch {
	case !c.Snowflake.UsesStores():
		return c.Snowflake.Addresses[0], nil
	case len(c.Stores) == 0:
		path, err := embeddedFile(c)
		return "sqlite:" + path, err
	}
	return config.CutStoreName(c.Stores[0]).URL, nil
}

func openDatabases(c config.Config, log *slog.Logger, tracer *trace.Tracer) (_ *databases, err error) {
	urls := c.Stores
	d := &databases{embedded: len(urls) == 0}
	if d.embedded {
		if d.file, err = embeddedFile(c); err != nil {
			return nil, err
		}
		urls = []string{"sqlite:" + d.file}
	}
	var named []segment.NamedStore
	for _, value := range urls {
		s := config.CutStoreName(value)
		if s.Name == "" {
			s.Name = defaultStoreName
		}
		store, err := openStore(s.URL, c, log)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.stores = append(d.stores, store)
		timed := newTimed(store, s.Name, tracer)
		d.loads = append(d.loads, timed.seconds)
		named = append(named, segment.NamedStore{Name: s.Name, Store: timed})
	}
	var rules []segment.TagRule
	for _, text := range c.TagRules {
		rule, err := segment.ParseTagRule(text)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		rules = append(rules, rule)
	}
	router, err := segment.NewRouter(named, rules)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.router = router
	return d, nil
}

// Close closes all connections.
func (d *databases) Close() error {
	var errs []error
	for _, s := range d.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// name returns the name of a database in the tag rule.
func (d *databases) name(store int) string { return d.router.Stores()[store].Name }

// addresses returns the URLs without passwords, with names if there are several.
func (d *databases) addresses() []string {
	out := make([]string, len(d.stores))
	for i, s := range d.stores {
		out[i] = s.Redacted()
		if len(d.stores) > 1 {
			out[i] = d.name(i) + "=" + out[i]
		}
	}
	return out
}

// catalog returns the rows of the databases, joined with a fence.
func (d *databases) catalog(timeout time.Duration, mark func(tag string) fence.Mark) *manage.Catalog {
	c := &manage.Catalog{Router: d.router, Timeout: timeout, Mark: mark, Pages: make(chan struct{}, mostPages), Lists: make(chan struct{}, mostLists)}
	for _, s := range d.stores {
		c.Stores = append(c.Stores, s)
	}
	return c
}
