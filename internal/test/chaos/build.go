package chaos

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/leaf-idgen/leaf/internal/test/clock"
)

// Build compiles the program, with a clock that can be moved, into a folder and
// returns its path. The first build of a machine takes a minute: it compiles the
// standard library too.
func Build(ctx context.Context, folder string) (string, error) {
	overlay, err := clock.Overlay(folder)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "leaf-chaos")
	out, err := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-overlay", overlay, "-o", path, "github.com/leaf-idgen/leaf/cmd/leaf").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program with a clock that moves: %w\n%s", err, out)
	}
	return path, nil
}
