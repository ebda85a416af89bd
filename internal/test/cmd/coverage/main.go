// Command coverage measures how much of the engines their tests reach, and fails if
// that is too little or not explained.
//
//	coverage -list docs/COVERAGE.md
//
// It runs the tests of the engines, and those of the packages in alsoRun, in the
// folder of the module; of what they reach only the engines count. It prints the
// figure of each engine, and every statement that no test reached. The exit code is 1
// if tests fail, if an engine is below the floor, if a statement that is not reached
// has no row in the list, or if a row has no such statement any more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// engines are the packages that are measured.
var engines = []string{".", "segment", "segment/fence", "segment/internal/bounded", "worker", "snowflake", "internal/alarm"}

// alsoRun has tests that drive the engines and need no server.
var alsoRun = []string{"driver/memory"}

// floor is the least share of statements, in percent.
const floor = 95

func main() {
	file := flag.String("list", "docs/COVERAGE.md", "the explained statements, in `FILE`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *file)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stdout, "coverage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	rows, err := parseList(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	module, err := exec.CommandContext(ctx, "go", "list", "-m").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	content, err := measure(ctx, out, strings.TrimSpace(string(module)))
	if err != nil {
		return err
	}
	blocks, err := parseProfile(content, strings.TrimSpace(string(module)))
	if err != nil {
		return err
	}
	if err := locate(os.DirFS("."), blocks); err != nil {
		return err
	}
	return report(out, blocks, rows, floor)
}

// measure runs the tests and returns the profile of the engines.
func measure(ctx context.Context, out io.Writer, module string) (profile string, err error) {
	dir, err := os.MkdirTemp("", "coverage")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "profile")
	measured := make([]string, len(engines))
	var packages []string
	for i, e := range engines {
		measured[i] = strings.TrimSuffix(module+"/"+e, "/.")
		packages = append(packages, "./"+e)
	}
	for _, p := range alsoRun {
		packages = append(packages, "./"+p)
	}
	args := append([]string{"test", "-short", "-count=1", "-timeout=10m", "-coverprofile=" + path, "-coverpkg=" + strings.Join(measured, ",")}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go test: %w", err)
	}
	content, err := os.ReadFile(path)
	return string(content), err
}
