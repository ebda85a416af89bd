package chaos

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/leaf-idgen/leaf/internal/test/clock"
	"github.com/leaf-idgen/leaf/internal/test/program"
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
	if err := program.Build(ctx, path, "-overlay", overlay); err != nil {
		return "", fmt.Errorf("with a clock that moves: %w", err)
	}
	return path, nil
}
