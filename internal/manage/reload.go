package manage

import "context"

// Reload is what a node finds when it reads its configuration again.
type Reload struct {
	Changed []Difference `json:"changed"` // what is in force from now on, or would be
	Restart []Difference `json:"restart"` // what takes effect only after a restart
}

// Difference is a key whose value differs. A secret is hidden, and a file with other content, or
// a database at another place, has no values or a text in Then.
type Difference struct {
	Key  string `json:"key"`
	Now  string `json:"now,omitempty"`
	Then string `json:"then,omitempty"`
}

// ReloadConfig makes the node read its configuration and the files that it names again, as
// SIGHUP does, and returns what is in force now and what needs a restart. Errors: leaf.ErrBadRequest if the
// configuration is wrong, and nothing has changed; leaf.ErrDisabled if the node cannot read it
// again; leaf.ErrNotReady.
type ReloadConfig struct{}

func (ReloadConfig) run(ctx context.Context, s NodeSite) (Reload, error) { return s.Reload(ctx, false) }

// PlanReload returns what Reload would, and changes nothing. Errors as of Reload.
type PlanReload struct{}

func (PlanReload) run(ctx context.Context, s NodeSite) (Reload, error) { return s.Reload(ctx, true) }

// RecordReload records a reload that was asked for in another way than by a request.
func (l *AuditLog) RecordReload(ctx context.Context, r Reload, outcome error) {
	c := ReloadConfig{}.change()
	r.change(&c)
	l.Record(ctx, c, outcome)
}
