package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/worker"
)

// TestLogInJSON has the words of a value where the text has them, not the number behind.
func TestLogInJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, _ := app.NewLogger(&out, config.Log{Level: "info", Format: "json"})
	log.Warn("m", "kind", worker.Leased, "wait", 1500*time.Millisecond, "n", 7, "error", errors.New("broken"),
		slog.Group("in", "kind", worker.Leased))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	want := map[string]any{
		"level": "WARN", "msg": "m", "kind": "leased", "wait": "1.5s", "n": 7.0, "error": "broken",
		"in": map[string]any{"kind": "leased"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the line differs (-want +got):\n%s", diff)
	}
}
