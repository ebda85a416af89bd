package app

import (
	"fmt"
	"reflect"
	"slices"
)

// reloadable are the keys whose values change while the node runs.
var reloadable = []string{"auth.token", "admin.token", "tls.cert", "tls.key"}

// Reload puts into force what of cfg can change while the node runs: the tokens, and the
// certificate with its key, which are read from their files again. A connection that is
// open keeps what it has. restart names the other keys that differ: they count after a
// restart. After an error nothing has changed. It is not safe for concurrent use.
func (a *App) Reload(cfg Config) (restart []string, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	for _, set := range []struct {
		key    string
		was    bool
		tokens []string
	}{
		{"auth.token", a.tokens.clients.Required(), cfg.Auth.Tokens},
		{"admin.token", a.tokens.admin.Required(), cfg.Admin.Tokens},
	} {
		if set.was && len(set.tokens) == 0 {
			return nil, &ConfigError{Key: set.key, Limit: "cannot be removed while the node runs, because then it would ask for no token; restart it"}
		}
	}
	if (cfg.TLS.Cert == "") != (a.secure == nil) {
		return nil, &ConfigError{Key: "tls.cert", Value: cfg.TLS.Cert, Limit: "cannot be switched on or off while the node runs; restart it"}
	}
	pair, err := cfg.TLS.certificate()
	if err != nil {
		return nil, err
	}
	if err := a.tokens.clients.Replace(cfg.Auth.Tokens); err != nil {
		return nil, err
	}
	if err := a.tokens.admin.Replace(cfg.Admin.Tokens); err != nil {
		return nil, err
	}
	if pair != nil {
		a.certificate.Store(pair)
	}
	now, next := reflect.ValueOf(a.cfg), reflect.ValueOf(cfg)
	for _, k := range Keys() {
		if k.content != "" || slices.Contains(reloadable, k.Name) {
			continue
		}
		if !reflect.DeepEqual(now.FieldByIndex(k.index).Interface(), next.FieldByIndex(k.index).Interface()) {
			restart = append(restart, k.Name)
		}
	}
	return restart, nil
}

// reload reads the configuration again and says in the log what came of it.
func (a *App) reload() {
	cfg, err := a.opts.Load()
	var restart []string
	if err == nil {
		restart, err = a.Reload(cfg)
	}
	if err != nil {
		a.log.Error("the configuration is not reloaded, and the node goes on with the one that it has", "error", err)
		return
	}
	a.log.Info("configuration reloaded: tokens and the TLS certificate are read again", "client_tokens", len(cfg.Auth.Tokens), "admin_tokens", len(cfg.Admin.Tokens))
	if len(restart) > 0 {
		a.log.Warn("other keys have changed; their values count after a restart", "keys", fmt.Sprint(restart))
	}
}
