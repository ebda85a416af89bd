package manage_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// recorder is a Caller that remembers which requests it was asked to carry out.
type recorder map[reflect.Type]bool

func (r recorder) Do(_ context.Context, request any) (any, error) {
	r[reflect.TypeOf(request)] = true
	return nil, nil //nolint:nilnil // the reply does not matter
}

// TestEveryOperationHasAMethod: what is in the table, the command line can ask for, and the
// other way round.
func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	asked := recorder{}
	b := reflect.ValueOf(manage.Backend{Caller: asked})
	for i := range b.NumMethod() {
		if b.Type().Method(i).Name == "Do" {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for in := 1; in < b.Method(i).Type().NumIn(); in++ {
			args = append(args, reflect.Zero(b.Method(i).Type().In(in)))
		}
		b.Method(i).Call(args)
	}
	mux := http.NewServeMux() // it panics where a route is there twice
	for _, op := range manage.Operations() {
		mux.Handle(op.Route, http.NotFoundHandler())
		if !asked[op.Request] {
			t.Errorf("%s: no method of Backend asks for %v", op.Route, op.Request)
		}
		delete(asked, op.Request)
	}
	for request := range asked {
		t.Errorf("%v is in no row of the table", request)
	}
}

// TestWhereOperationsWork: a command that has opened a registry or a directory can do with it
// what the table says, and nothing else.
func TestWhereOperationsWork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		site  any
		works func(op manage.Operation) bool
	}{
		"nothing": {struct{}{}, func(manage.Operation) bool { return false }},
		"a registry": {noRegistry{}, func(op manage.Operation) bool {
			switch op.Route {
			case "GET /v1/workers", "POST /v1/worker/release", "POST /v1/worker/init":
				return true
			}
			return false
		}},
		"a directory": {noDirectory{}, func(op manage.Operation) bool { return op.Route == "GET /v1/nodes" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, op := range manage.Operations() {
				_, err := manage.On(tt.site).Do(t.Context(), reflect.Zero(op.Request).Interface())
				want := leaf.ErrDisabled
				if tt.works(op) {
					want = errOpened
				}
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", op.Route, err, want)
				}
			}
		})
	}
}

// errOpened says that an operation has asked for what it works on.
var errOpened = errors.New("opened")

type noRegistry struct{}

func (noRegistry) Registry(context.Context) (*manage.Registry, error) { return nil, errOpened }

type noDirectory struct{}

func (noDirectory) Directory(context.Context) (*manage.Directory, error) { return nil, errOpened }

func TestUnknownRequest(t *testing.T) {
	t.Parallel()
	if _, err := manage.On(noRegistry{}).Do(t.Context(), 7); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("got %v", err)
	}
}
