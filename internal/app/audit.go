package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

var (
	_ manage.Audited = (*node)(nil)
	_ manage.Audited = (*offline)(nil)
)

// auditLog returns the log in the first of dbs; without any, every change is missed.
func auditLog(c config.Config, dbs *databases) *manage.AuditLog {
	l := &manage.AuditLog{Keep: c.Audit.Keep, Timeout: c.Segment.LoadTimeout}
	if len(dbs.stores) > 0 {
		l.Store = dbs.stores[0]
	}
	return l
}

// openAuditLog makes the log of a running node.
func (a *App) openAuditLog() {
	a.audit = auditLog(a.cfg, a.dbs)
	a.audit.Node, a.audit.Actor = a.dir.NodeID(), manage.Actor{Who: "the program of the node"}
	a.audit.Missed = func(e audit.Entry, err error) {
		a.log.Warn("an administrative change is not in the audit log", "who", e.Who, "address", e.Address,
			"operation", e.Operation, "object", e.Object, "from", e.From, "to", e.To, "result", e.Result, "error", err)
	}
}

// AuditLog implements manage.Audited.
func (n *node) AuditLog() *manage.AuditLog { return n.app.audit }

// commandAuditLog makes the log of a command that works without a node.
func commandAuditLog(c config.Config, dbs *databases, opts Options) *manage.AuditLog {
	l := auditLog(c, dbs)
	host, _ := os.Hostname() // it is for people
	l.Node, l.Actor = cmp.Or(host, "unknown host"), manage.Actor{Who: "offline: " + systemUser(os.Getuid()), Address: "local"}
	l.Missed = func(e audit.Entry, err error) {
		if e.Result == audit.Done && opts.Warn != nil && l.Store != nil { // without a database there is no log to miss
			opts.Warn(fmt.Sprintf("the change (%s of %s) is done, and not in the audit log: %v", e.Operation, e.Object, err))
		}
	}
	return l
}

// AuditLog implements manage.Audited.
func (o *offline) AuditLog() *manage.AuditLog { return commandAuditLog(o.cfg, o.dbs, o.opts) }

// systemUser is the name of a user of the operating system.
func systemUser(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return strconv.Itoa(id)
}

// recordReload records a reload that no request asked for.
func (a *App) recordReload(who string, r manage.Reload, err error) {
	ctx := manage.WithActor(context.Background(), manage.Actor{Who: who, Address: "local"})
	a.audit.RecordReload(ctx, r, err)
}
