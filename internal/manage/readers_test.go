package manage_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// engineSite is a site with an engine.
type engineSite struct{ site }

func (s engineSite) Info(context.Context) (manage.Info, error) { return manage.Info{}, nil }

func (s engineSite) Engine(context.Context) (*manage.Catalog, error) { return s.catalog, nil }

// TestReadersWriteNothing: what needs the role read only leaves nothing in the database, also if the
// caller leaves before it has ended. A plan of a repair asks all nodes, by a row that then stays: with
// enough of them no node would hear of a regress in time.
func TestReadersWriteNothing(t *testing.T) {
	t.Parallel()
	s := memory.New()
	a, _ := node(t, s, &silentFence{Fence: memory.NewFence()})
	c := catalogOf(t, s)
	c.Engine = func(context.Context) (*segment.Allocator, error) { return a, nil }
	b, asked := manage.On(engineSite{site{catalog: c}}), 0
	for _, op := range manage.Operations() {
		method, path, _ := strings.Cut(op.Route, " ")
		if !manage.ForReaders(method, path) {
			continue
		}
		request := reflect.New(op.Request).Elem()
		if name := request.FieldByName("Name"); name.IsValid() {
			name.SetString("nosuch")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := b.Do(ctx, request.Interface()); err == nil {
			asked++
		}
		cancel()
		if notices, err := s.Notices(t.Context()); err != nil || len(notices) > 0 {
			t.Errorf("%s: the board has %+v, %v", op.Route, notices, err)
		}
	}
	if asked == 0 {
		t.Error("no request was carried out, so the test proves nothing")
	}
}
