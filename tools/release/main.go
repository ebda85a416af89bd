// Command release builds the program and its Debian package as .goreleaser.yaml says,
// without goreleaser, for the platform that it runs on:
//
//	go run . -out ../../bin/release
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	root := flag.String("root", filepath.Join("..", ".."), "folder of .goreleaser.yaml")
	out := flag.String("out", "", "folder for what is built")
	tag := flag.String("tag", "v0.0.0", "version of the package")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *root, *out, *tag)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out, tag string) error {
	if out == "" {
		return fmt.Errorf("-out is missing")
	}
	r, err := open(ctx, root, tag)
	if err != nil {
		return err
	}
	program, err := r.program(ctx, out)
	if err != nil {
		return err
	}
	deb, err := r.debian(out, program)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s\n%s\n", program, deb)
	return err
}
