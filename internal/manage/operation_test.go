package manage_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// TestEveryRequestIsInTheTable: a request is a type with a method run.
func TestEveryRequestIsInTheTable(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{}
	mux := http.NewServeMux() // it panics where a route is there twice
	for _, op := range manage.Operations() {
		mux.Handle(op.Route, http.NotFoundHandler())
		rows[op.Request.Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range regexp.MustCompile(`(?m)^func \((?:\w+ )?(\w+)\) run\(`).FindAllSubmatch(source, -1) {
			requests++
			if request := string(method[1]); !rows[request] {
				t.Errorf("%s: %s is in no row of the table", file, request)
			}
		}
	}
	if requests != len(rows) {
		t.Errorf("%d requests for %d rows", requests, len(rows))
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
