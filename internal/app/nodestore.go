package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// warnOfOtherStores says that the node which carries out a command uses other databases than the
// configuration of the command names: LEAF_STORE, say, beside a node of a trial.
func warnOfOtherStores(ctx context.Context, b manage.Backend, cfg config.Config, opts Options) {
	if len(cfg.Stores) == 0 || opts.Warn == nil {
		return
	}
	dbs, err := openDatabases(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return // the node has its own configuration
	}
	named := dbs.addresses()
	_ = dbs.Close() // nothing was connected
	info, err := manage.Ask(ctx, b, manage.GetInfo{})
	if err != nil || slices.Equal(places(named), places(info.Stores)) {
		return
	}
	opts.Warn(fmt.Sprintf("the node that runs in data directory %s uses the store %s, and the command works on that, not on %s of the configuration. For the latter, give --store, or the --data-dir of a node that uses it",
		info.DataDir, strings.Join(info.Stores, " "), strings.Join(named, " ")))
}

// places returns where databases are, sorted: without users and options, which may differ.
func places(addresses []string) (out []string) {
	for _, address := range addresses {
		_, after, _ := strings.Cut(config.CutStoreName(address).URL, ":")
		if u, err := url.Parse("x:" + after); err == nil && u.Host != "" {
			after = u.Host + u.Path
		}
		out = append(out, after)
	}
	return slices.Sorted(slices.Values(out))
}
