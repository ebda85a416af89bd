package worker_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestStaticNumberOutOfRange: the registry of a static number refuses one that is not
// among those of the layout.
func TestStaticNumberOutOfRange(t *testing.T) {
	r, err := worker.NewStatic(7).Claim(t.Context(), worker.Request{Numbers: leaf.Range{Lo: 0, Hi: 4}})
	if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), `worker-id="7"`) && !strings.Contains(err.Error(), "worker-id=7") {
		t.Errorf("Claim = %+v, %v", r, err)
	}
}
