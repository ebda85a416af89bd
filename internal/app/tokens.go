package app

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// tokens are those that are valid now. Reload exchanges those of the configuration.
type tokens struct {
	clients, admin *auth.Tokens
	named          *auth.Named // nil: auth.named is not set
	guard          *auth.Guard
}

func newTokens(c config.Config) (t tokens, err error) {
	t = tokens{clients: auth.NewTokens(c.Auth.Tokens...), admin: auth.NewAdminTokens(c.Admin.Tokens...), guard: auth.NewGuard(time.Now)}
	if c.Auth.Named != "" {
		t.named = auth.NewNamed()
	}
	certificates, err := c.Auth.Grants()
	if err != nil {
		return t, err
	}
	t.clients.WithNamed(t.named, certificates).WithGuard(t.guard)
	t.admin.WithNamed(t.named, nil).WithGuard(t.guard)
	return t, nil
}

// namedTokens returns where the named tokens of a configuration are.
func namedTokens(c config.Config, dbs *databases) (*manage.Tokens, error) {
	t := &manage.Tokens{Timeout: c.Segment.LoadTimeout, Asked: c.Auth.Named != ""}
	path := c.Auth.NamedFile()
	switch {
	case path != "":
		t.Store = tokenFile{path}
	case len(dbs.stores) > 0:
		t.Store = dbs.stores[0]
	default:
		return nil, fmt.Errorf("%w: named tokens are kept in the first database of segment mode or of the worker IDs, and there is none; auth.named=file:PATH keeps them in a file", leaf.ErrDisabled)
	}
	return t, nil
}

func (a *App) followTokens(store auth.Store) auth.FollowConfig {
	return auth.FollowConfig{Store: store, Interval: a.cfg.Limit.Refresh, Timeout: a.cfg.Segment.LoadTimeout, Runtime: leaf.SystemRuntime(), Logger: a.log}
}

// followNamed keeps the named tokens as the database or the file has them until ctx ends.
func (a *App) followNamed(ctx context.Context) {
	if a.tokens.named == nil {
		return
	}
	t, err := namedTokens(a.cfg, a.dbs)
	if err != nil {
		a.log.Error("named tokens cannot be read", "error", err) // the configuration was checked
		return
	}
	a.tokens.named.Follow(ctx, a.followTokens(t.Store))
}

// watchGuard raises an alarm while wrong tokens are refused unheard, until ctx ends.
func (a *App) watchGuard(ctx context.Context) {
	const subject = "tokens"
	for {
		select {
		case <-a.tokens.guard.Woken():
		case <-ctx.Done():
			return
		}
		for st := a.tokens.guard.Status(); st.Active; st = a.tokens.guard.Status() {
			a.alarms.Raise(leaf.Alarm{
				Code: leaf.AlarmAuth, Subject: subject,
				Text: fmt.Sprintf("too many wrong tokens; those of %s were refused last, %d attempts since the start", st.Last, st.Refused),
				Do:   "find out which client shows a wrong token, or who guesses; give that client the right one, or keep the address away with a firewall",
			})
			if leaf.SystemRuntime().Wait(ctx, nil, auth.Calm/6) != nil {
				return
			}
		}
		a.alarms.Clear(leaf.AlarmAuth, subject)
	}
}

// Tokens implements manage.TokenSite.
func (n *node) Tokens(context.Context) (*manage.Tokens, error) {
	t, err := namedTokens(n.app.cfg, n.app.dbs)
	if err != nil || n.app.tokens.named == nil {
		return t, err
	}
	t.Changed = func(ctx context.Context) {
		if err := n.app.tokens.named.Refresh(ctx, n.app.followTokens(t.Store)); err != nil {
			n.app.log.Warn("a change of a named token takes effect only at the next reading", "error", err)
		}
	}
	return t, nil
}

// Tokens implements manage.TokenSite.
func (o *offline) Tokens(context.Context) (*manage.Tokens, error) { return namedTokens(o.cfg, o.dbs) }

var (
	_ manage.TokenSite = (*node)(nil)
	_ manage.TokenSite = (*offline)(nil)
)
