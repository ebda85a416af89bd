package app

import (
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"
)

// reloadable are the keys whose values change while the node runs, or whose passwords do.
var reloadable = []string{"auth.token", "admin.token", "tls.cert", "tls.key", clientCAKey, storeKey, registryKey, config.FenceKey, config.DiscoveryKey}

// Reloaded is what Reload found.
type Reloaded struct {
	Passwords int      // databases and registries for which another password is in force
	Restart   []string // keys with other differences, which count after a restart
}

// Reload puts into force what of cfg can change while the node runs: the tokens, the
// certificate with its key, the certificates of tls.client-ca, and the passwords of
// databases and registries, all of which are read from their files again. A connection
// that is open keeps what it has. After an error nothing has changed. It is not safe for
// concurrent use.
func (a *App) Reload(cfg config.Config) (r Reloaded, err error) {
	if err := cfg.Validate(); err != nil {
		return r, err
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
			return r, &config.Error{Key: set.key, Limit: "cannot be removed while the node runs, because then it would ask for no token; restart it"}
		}
	}
	if (cfg.TLS.Cert == "") != (a.secure == nil) {
		return r, &config.Error{Key: "tls.cert", Value: cfg.TLS.Cert, Limit: "cannot be switched on or off while the node runs; restart it"}
	}
	pair, err := certificate(cfg.TLS)
	if err != nil {
		return r, err
	}
	authorities, err := clientAuthorities(cfg.TLS)
	if err != nil {
		return r, err
	}
	logins, err := a.newLogins(cfg)
	if err != nil {
		return r, err
	}
	if err := a.tokens.clients.Replace(cfg.Auth.Tokens); err != nil {
		return r, err
	}
	if err := a.tokens.admin.Replace(cfg.Admin.Tokens); err != nil {
		return r, err
	}
	if pair != nil {
		a.certificate.Store(pair)
	}
	switched := (authorities == nil) != (a.authorities.Load() == nil) // which the servers do not see
	if authorities != nil && !switched {
		a.authorities.Store(authorities)
	}
	r.Restart = logins.differ
	for _, use := range logins.use {
		if use() {
			r.Passwords++
		}
	}
	for _, key := range config.Changed(a.cfg, cfg) {
		if !slices.Contains(reloadable, key) || key == clientCAKey && switched {
			r.Restart = append(r.Restart, key)
		}
	}
	return r, nil
}

// reload reads the configuration again and says in the log what came of it.
func (a *App) reload() {
	cfg, err := a.opts.Load()
	var r Reloaded
	if err == nil {
		r, err = a.Reload(cfg)
	}
	if err != nil {
		a.log.Error("the configuration is not reloaded, and the node goes on with the one that it has", "error", err)
		return
	}
	a.log.Info("configuration reloaded: tokens, the TLS certificates and the passwords of databases and registries are read again",
		"client_tokens", len(cfg.Auth.Tokens), "admin_tokens", len(cfg.Admin.Tokens), "changed_passwords", r.Passwords)
	if len(r.Restart) > 0 {
		a.log.Warn("other settings have changed, which are not in force: restart the node to use them", "changed", strings.Join(r.Restart, "; "))
	}
}
