package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf/internal/test/port"
)

// Detach makes the primary commit alone, as semi-synchronous replication does by
// itself when its standby stays away, and the standby receive nothing more. A
// node that is down is left out.
func (p *Pair) Detach(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	if !p.complete() {
		return nil
	}
	leader := p.Primary()
	if p.running(leader) {
		if err := p.kind.synchronous(ctx, p.admin(leader), false); err != nil {
			return fmt.Errorf("detach: %w", err)
		}
	}
	if err := p.cut(ctx, 1-leader); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detached = true
	return nil
}

// Attach ends a Detach, and returns when the standby has all that it missed and
// is waited for again. Both must run.
func (p *Pair) Attach(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	leader, parted := p.primary, p.parted
	p.mu.Unlock()
	if parted {
		return fmt.Errorf("attach: node %d of %s is a former primary: it needs Rebuild", 1-leader, p.title)
	}
	from, err := p.link(p.Addr(leader))
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	if err := p.kind.resume(ctx, p.admin(1-leader), from, p.password); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	if err := p.join(ctx, leader); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	return nil
}

// Promote makes the standby the primary, with all that it has received. It
// commits alone until Rebuild. The former primary is left as it is; one that runs
// and was not detached waits with its next commit for a standby that is gone.
func (p *Pair) Promote(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	next, parted := 1-p.primary, p.parted
	p.mu.Unlock()
	if parted {
		return fmt.Errorf("promote: node %d of %s is a former primary: it needs Rebuild", next, p.title)
	}
	if err := p.cut(ctx, next); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	position, err := p.kind.promote(ctx, p.admin(next))
	if err != nil {
		return fmt.Errorf("promote node %d of %s: %w", next, p.title, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.primary, p.parted, p.detached, p.position = next, true, false, position
	return nil
}

// Lost returns how many transactions the former primary has committed that the
// promoted one does not have. Commits that nobody was told of count too: a
// primary that is killed while it waits for its standby keeps them. A former
// primary that is down is started for this on another port.
func (p *Pair) Lost(ctx context.Context) (int, error) {
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	former, parted, promoted := 1-p.primary, p.parted, p.position
	p.mu.Unlock()
	if !parted {
		return 0, nil
	}
	position, err := p.lastPosition(ctx, former)
	if err != nil {
		return 0, fmt.Errorf("ask node %d of %s what it committed: %w", former, p.title, err)
	}
	return int(position - promoted), nil
}

func (p *Pair) lastPosition(ctx context.Context, i int) (int64, error) {
	if p.running(i) {
		return p.kind.position(ctx, p.admin(i))
	}
	spare, err := port.Claim(ctx)
	if err != nil {
		return 0, err
	}
	defer spare.Release()
	if err := p.launchAt(ctx, i, spare.Number, alone, p.kind.admin); err != nil {
		return 0, err
	}
	defer p.Stop(i)
	return p.kind.position(ctx, p.kind.admin(spare.Addr(), p.password))
}

// Rebuild wipes the former primary and makes it the standby of the new one, and
// returns when it is waited for. The primary must run. On MariaDB the standby
// executes again all that has ever been committed, which is why only ctx bounds
// the time.
func (p *Pair) Rebuild(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	former, parted := 1-p.primary, p.parted
	p.mu.Unlock()
	if !parted {
		return nil
	}
	p.Kill(former)
	if err := wipe(p.nodes[former].dir); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := p.addStandby(ctx, former); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// wipe removes a node's data and leaves its log.
func wipe(dir string) error {
	freeSharedMemory(dir)
	return errors.Join(os.RemoveAll(filepath.Join(dir, "data")), os.RemoveAll(filepath.Join(dir, "tmp")))
}

// cut makes a standby receive nothing more, if it runs.
func (p *Pair) cut(ctx context.Context, i int) error {
	if !p.running(i) {
		return nil
	}
	return p.kind.cut(ctx, p.admin(i))
}
