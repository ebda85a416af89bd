package app

import (
	"context"
	"errors"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/takeover"
)

// OpenSources opens the databases of another ID service. It does not connect.
func OpenSources(kind string, urls []string, c config.Config) (takeover.Source, error) {
	var all otherService
	for _, url := range urls {
		s, err := sqldb.OpenSource(kind, url, sqldb.Config{ConnectTimeout: c.ConnectTimeout})
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, s)
	}
	return all, nil
}

// otherService are the databases that one service counts in.
type otherService []*sqldb.Source

// Counters implements takeover.Source.
func (s otherService) Counters(ctx context.Context, names ...string) (all []takeover.Counter, err error) {
	for _, one := range s {
		counters, err := one.Counters(ctx, names...)
		if err != nil {
			return nil, manage.StoreError(err)
		}
		all = append(all, counters...)
	}
	return all, nil
}

// Close implements takeover.Source.
func (s otherService) Close() error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}
