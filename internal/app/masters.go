package app

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/masters"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// issuer returns what issues the IDs of all tags, also of those in several databases.
func (d *databases) issuer(engine *segment.Allocator, c config.Segment) (leaf.Issuer, error) {
	if !d.router.HasMasters() {
		return engine, nil
	}
	return masters.New(engine, d.router, masters.Config{Near: c.Near, MaxWait: c.MaxWait})
}

// template is segment.Allocator.Template for all tags.
func (a *App) template(tag string) (t *number.Template, known bool, err error) {
	if a.dbs.router.Masters(tag) != nil {
		return nil, true, fmt.Errorf("%w: tag %q lives in several databases, and such a tag has no format", leaf.ErrBadRequest, tag)
	}
	return a.alloc.Template(tag)
}
