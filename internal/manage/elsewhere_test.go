package manage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// unread is a database whose board may be there: its user may not read it.
type unread struct {
	*memory.Store
	err error
}

func (u unread) Answers(context.Context, string) ([]segment.Answer, error) { return nil, u.err }

// TestCreateBesideAnUnreadBoard: another database perhaps knows numbers of the tag, and does not let
// its user read them. Where it has no tables for them it knows none.
func TestCreateBesideAnUnreadBoard(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ err, want error }{
		"missing":            {segment.ErrSchema, nil},
		"missing, or denied": {fmt.Errorf("%w, or %w", segment.ErrSchema, segment.ErrDenied), segment.ErrDenied},
	} {
		own, other := memory.New(), unread{memory.New(), tt.err}
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: own}, {Name: "b", Store: other}}, []segment.TagRule{{Pattern: "*", Store: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		b := manage.On(site{catalog: &manage.Catalog{
			Stores: []manage.Store{own, other}, Router: router, Timeout: time.Minute,
			Mark: func(string) fence.Mark { return fence.Mark{} }, TagChanged: func(context.Context, string) error { return nil },
		}})
		if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
