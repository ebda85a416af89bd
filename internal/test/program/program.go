// Package program builds the program leaf for tests and benchmarks that run it as a process.
package program

import (
	"context"
	"fmt"
	"os/exec"
)

// Build builds the program into path, without the tables of a debugger, which no run needs. args are
// more flags of go build.
func Build(ctx context.Context, path string, args ...string) error {
	args = append([]string{"build", "-ldflags=-w", "-o", path}, args...)
	out, err := exec.CommandContext(ctx, "go", append(args, "github.com/leaf-idgen/leaf/cmd/leaf")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return nil
}
