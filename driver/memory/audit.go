package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/audit"
)

var _ audit.Store = (*Store)(nil)

// Record implements audit.Store.
func (s *Store) Record(ctx context.Context, e audit.Entry, keep time.Duration) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("record a change: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := audit.Oldest(e, time.Now(), keep)
	s.entries = slices.DeleteFunc(s.entries, func(old audit.Entry) bool { return old.ID < oldest || old.ID == e.ID })
	s.entries = append(s.entries, e)
	slices.SortFunc(s.entries, func(a, b audit.Entry) int { return strings.Compare(b.ID, a.ID) })
	return nil
}

// Entries implements audit.Store.
func (s *Store) Entries(ctx context.Context, q audit.Query) (page []audit.Entry, next string, err error) {
	if err := q.Validate(); err != nil {
		return nil, "", err
	}
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("read changes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if !q.Has(e) {
			continue
		}
		if len(page) == q.Limit {
			return page, page[q.Limit-1].ID, nil
		}
		e.Time = audit.TimeOf(e.ID)
		page = append(page, e)
	}
	return page, "", nil
}
