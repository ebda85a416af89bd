package app

import (
	"bytes"
	"crypto/tls"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/server/format"
)

// reloadable are the keys whose values change while the node runs, or whose passwords do.
var reloadable = []string{
	"auth.token", "admin.token", "tls.cert", "tls.key", clientCAKey, orderCAKey, config.CertificateKey, storeKey, registryKey, config.FenceKey, config.DiscoveryKey,
	levelKey, format.KeysKey, "reload-interval", webhookKey, "segment.max-step", "segment.fixed-step", "limit.max-waiting", "limit.target-wait",
	"log.access", "drain-delay", weightKey, "metrics.tags",
}

const (
	levelKey   = "log.level"
	webhookKey = "alarm.webhook"
	weightKey  = "node.weight"
)

// Reloaded is what Reload found.
type Reloaded struct {
	Changed   []config.Difference // what is in force now; a file with other content has no values
	Passwords int                 // databases and registries for which another password is in force
	Restart   []string            // keys with other differences, which count after a restart
}

// reloading is a configuration that was read and checked, and what it takes to put it into force.
type reloading struct {
	Reloaded
	differ []config.Difference // all keys, also those for which a restart is needed
	logins []func() (changed bool)
	enact  func() error // all but the logins
}

// Reload puts into force what of cfg can change while the node runs: the tokens, the
// certificate with its key, the certificates of tls.client-ca and order.ca, the roles of clients' certificates, the keys of opaque IDs, the
// passwords of databases and registries, all of which are read from their files again, and the values of the other keys in
// reloadable. A connection that is open keeps what it has. After an error nothing has changed.
// While the last attempt has failed, the alarm leaf.AlarmConfiguration is active.
// It is not safe for concurrent use.
func (a *App) Reload(cfg config.Config) (Reloaded, error) {
	r, err := a.use(cfg, nil)
	return r.Reloaded, err
}

// use is Reload, of a configuration that was read with an error or without one.
func (a *App) use(cfg config.Config, err error) (r reloading, _ error) {
	if err == nil {
		r, err = a.planReload(cfg)
	}
	if err == nil {
		err = a.carryOut(&r, cfg)
	}
	if err != nil {
		a.alarms.Raise(reloadAlarm(err))
		return reloading{}, err
	}
	a.alarms.Clear(leaf.AlarmConfiguration, reloadSubject)
	return r, nil
}

const reloadSubject = "reload"

func reloadAlarm(err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmConfiguration, Subject: reloadSubject,
		Text: "the node goes on with the configuration that it has, because the one on the disk cannot be used: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		Do:   "correct it before the node is restarted, and look at it with leaf config check; then run leaf reload, unless reload-interval makes the node try again by itself",
	}
}

// carryOut puts what planReload found into force.
func (a *App) carryOut(r *reloading, cfg config.Config) error {
	if err := r.enact(); err != nil {
		return err
	}
	for _, use := range r.logins {
		if use() {
			r.Passwords++
		}
	}
	for _, d := range r.Changed {
		a.inForce = a.inForce.With(cfg, d.Key)
	}
	return nil
}

// planReload is Reload without a change.
func (a *App) planReload(cfg config.Config) (r reloading, err error) {
	if err := cfg.Validate(); err != nil {
		return r, err
	}
	for _, set := range []struct {
		key    string
		was    bool
		tokens []string
	}{
		{"auth.token", a.tokens.clients.Fixed(), cfg.Auth.Tokens},
		{"admin.token", a.tokens.admin.Fixed(), cfg.Admin.Tokens},
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
	others := a.others.Load()
	if a.order != nil {
		if others, err = a.othersAuthorities(cfg); err != nil {
			return r, err
		}
	}
	ring, err := readRing(cfg.Opaque)
	if err != nil {
		return r, err
	}
	if _, err := a.opaque.check(cfg.Opaque, ring); err != nil {
		return r, err
	}
	logins, err := a.newLogins(cfg)
	if err != nil {
		return r, err
	}
	certified, err := cfg.Auth.Grants()
	if err != nil {
		return r, err
	}
	switched := (authorities == nil) != (a.authorities.Load() == nil) // which the servers do not see
	r.logins, r.Restart = logins.use, logins.differ
	r.differ = config.Changed(a.inForce, cfg)
	for _, d := range r.differ {
		switch {
		case !slices.Contains(reloadable, d.Key), d.Key == clientCAKey && switched,
			d.Key == config.CertificateKey && (d.Now == "" || d.Then == ""), d.Key == levelKey && a.opts.Level == nil,
			d.Key == webhookKey && (d.Now == "" || d.Then == ""), d.Key == weightKey && a.presence == nil:
			r.Restart = append(r.Restart, d.Key)
		case !slices.ContainsFunc(logins.differ, func(text string) bool { return keyOf(text) == d.Key }):
			r.Changed = append(r.Changed, d)
		}
	}
	if pair != nil && !sameCertificate(pair, a.certificate.Load()) && cfg.TLS.Cert == a.inForce.TLS.Cert {
		r.Changed = append(r.Changed, config.Difference{Key: "tls.cert"})
	}
	if authorities != nil && !switched && !authorities.Equal(a.authorities.Load()) && cfg.TLS.ClientCA == a.inForce.TLS.ClientCA {
		r.Changed = append(r.Changed, config.Difference{Key: clientCAKey})
	}
	if !others.Equal(a.others.Load()) && cfg.Order.CA == a.inForce.Order.CA {
		r.Changed = append(r.Changed, config.Difference{Key: orderCAKey})
	}
	if a.opaque.differs(ring) && cfg.Opaque.Keys == a.inForce.Opaque.Keys {
		r.Changed = append(r.Changed, config.Difference{Key: format.KeysKey})
	}
	r.enact = func() error {
		if err := a.opaque.replace(cfg.Opaque, ring, a.dir, a.compareSoon); err != nil {
			return err
		}
		if err := a.tokens.clients.Replace(cfg.Auth.Tokens); err != nil {
			return err
		}
		if err := a.tokens.admin.Replace(cfg.Admin.Tokens); err != nil {
			return err
		}
		a.tokens.clients.ReplaceCertificates(certified)
		if pair != nil {
			a.certificate.Store(pair)
		}
		if authorities != nil && !switched {
			a.authorities.Store(authorities)
		}
		a.others.Store(others)
		return a.useValues(cfg)
	}
	return r, nil
}

// useValues puts the keys into force that are plain values.
func (a *App) useValues(cfg config.Config) error {
	if a.opts.Level != nil {
		a.opts.Level.Set(levelOf(cfg.Log))
	}
	if was, is := a.inForce.Alarm.Webhook, cfg.Alarm.Webhook; was != is && was != "" && is != "" {
		if err := a.alarms.SetWebhook(is); err != nil {
			return err
		}
	}
	if now := a.inForce.Limit; now.TargetWait != cfg.Limit.TargetWait || now.MaxWaiting != cfg.Limit.MaxWaiting {
		a.gate.SetWaiting(cfg.Limit.TargetWait, int(cfg.Limit.MaxWaiting))
		a.order.setMaxWaiting(int(cfg.Limit.MaxWaiting))
	}
	a.accessLog.Store(cfg.Log.Access)
	a.tags.SetLimit(int(cfg.Metrics.Tags))
	a.drain.setUsual(cfg.DrainDelay)
	if weight := cfg.Node.Weight; weight != a.inForce.Node.Weight && a.presence != nil {
		a.presence.setWeight(int(weight))
	}
	if a.alloc == nil {
		return nil
	}
	return a.alloc.SetStep(cfg.Segment.MaxStep, cfg.Segment.FixedStep)
}

// keyOf returns the key in a text of newLogins.differ: "store a: host …" is about store.
func keyOf(text string) string {
	key, _, _ := strings.Cut(text, ":")
	key, _, _ = strings.Cut(key, " ")
	return key
}

func sameCertificate(x, y *tls.Certificate) bool {
	return y != nil && slices.EqualFunc(x.Certificate, y.Certificate, bytes.Equal)
}
