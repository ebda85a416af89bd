package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// reload reads the configuration again and says in the log what came of it.
func (a *App) reload() (manage.Reload, error) {
	cfg, err := a.readConfig()
	r, err := a.use(cfg, err)
	a.sources.failed(err)
	return a.tellOfReload(cfg, r, err)
}

// tellOfReload says in the log what came of a reload, and returns it for people.
func (a *App) tellOfReload(cfg config.Config, r reloading, err error) (manage.Reload, error) {
	if err != nil {
		a.log.Error("the configuration is not reloaded, and the node goes on with the one that it has", "error", err)
		return manage.Reload{}, fmt.Errorf("%w: nothing has changed: %w", leaf.ErrBadRequest, err)
	}
	a.log.Info("configuration reloaded: tokens, the TLS certificates and the passwords of databases and registries are read again",
		"client_tokens", len(cfg.Auth.Tokens), "admin_tokens", len(cfg.Admin.Tokens), "changed_passwords", r.Passwords, "changed", keysOf(r.Changed))
	if len(r.Restart) > 0 {
		a.log.Warn("other settings have changed, which are not in force: restart the node to use them", "changed", strings.Join(r.Restart, "; "))
	}
	return r.forPeople(), nil
}

func keysOf(changed []config.Difference) string {
	keys := make([]string, len(changed))
	for i, d := range changed {
		keys[i] = d.Key
	}
	return strings.Join(keys, " ")
}

// forPeople adds to what needs a restart the values that it has now and then.
func (r reloading) forPeople() manage.Reload {
	out := manage.Reload{Changed: []manage.Difference{}, Restart: []manage.Difference{}}
	for _, d := range r.Changed {
		out.Changed = append(out.Changed, manage.Difference(d))
	}
	for _, text := range r.Restart {
		key, then, _ := strings.Cut(text, ": ")
		d := manage.Difference{Key: key, Then: then}
		for _, whole := range r.differ {
			if whole.Key == text {
				d = manage.Difference(whole)
			}
		}
		out.Restart = append(out.Restart, d)
	}
	return out
}

// reloadWhenAsked carries out one request for a reload after the other until ctx ends. It is
// a loop of its own: a file that hangs, such as a named pipe without a writer, must not keep
// the node from a stop.
func (a *App) reloadWhenAsked(ctx context.Context) {
	interval := a.inForce.ReloadInterval
	look, stop := every(interval)
	defer func() { stop() }()
	for {
		var f func()
		select {
		case <-ctx.Done():
			return
		case <-a.opts.Reload:
			f = func() {
				r, err := a.reload() // the log has the error
				a.recordReload("signal SIGHUP", r, err)
			}
		case q := <-a.reloads:
			f = func() { a.answer(q) }
		case <-look:
			f = a.reloadIfChanged
		}
		tellWhileItHangs(a.alarms, f)
		if now := a.inForce.ReloadInterval; now != interval {
			stop()
			interval = now
			look, stop = every(now)
		}
	}
}

// every returns a channel that delivers at each interval, and never for 0.
func every(interval time.Duration) (tick <-chan time.Time, stop func()) {
	if interval == 0 {
		return nil, func() {}
	}
	t := time.NewTicker(interval)
	return t.C, t.Stop
}

// reloadRequest asks reloadWhenAsked for a reload.
type reloadRequest struct {
	plan  bool // change nothing
	reply chan<- reloadReply
}

type reloadReply struct {
	reload manage.Reload
	err    error
}

// answer carries a request out.
func (a *App) answer(q reloadRequest) {
	var r reloadReply
	if q.plan {
		r.reload, r.err = a.look()
	} else {
		r.reload, r.err = a.reload()
	}
	q.reply <- r
}

// look is reload without a change.
func (a *App) look() (manage.Reload, error) {
	cfg, _, err := a.opts.Load()
	if err != nil {
		return manage.Reload{}, fmt.Errorf("%w: a reload would fail: %w", leaf.ErrBadRequest, err)
	}
	r, err := a.planReload(cfg)
	if err != nil {
		return manage.Reload{}, fmt.Errorf("%w: a reload would fail: %w", leaf.ErrBadRequest, err)
	}
	return r.forPeople(), nil
}

// Reload implements manage.NodeSite. The loop that SIGHUP wakes carries it out, one request
// after the other.
func (n *node) Reload(ctx context.Context, plan bool) (manage.Reload, error) {
	if n.app.opts.Load == nil {
		return manage.Reload{}, fmt.Errorf("%w: this node was given its configuration by a program, and cannot read it again", leaf.ErrDisabled)
	}
	reply := make(chan reloadReply, 1)
	select {
	case n.app.reloads <- reloadRequest{plan, reply}:
	case <-ctx.Done():
		return manage.Reload{}, fmt.Errorf("%w: the node is starting or stopping, or is still reading its configuration for another request", leaf.ErrNotReady)
	}
	select {
	case r := <-reply:
		return r.reload, r.err
	case <-ctx.Done():
		return manage.Reload{}, fmt.Errorf("%w: the configuration is still being read; the log says what comes of it", leaf.ErrNotReady)
	}
}
