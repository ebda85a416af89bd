package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// TestServers starts and stops each of our servers inside the test's process, and asks it
// as the comparison does.
func TestServers(t *testing.T) {
	t.Parallel()
	asks := map[string]func(ctx context.Context, addr string) error{
		"http": func(ctx context.Context, addr string) error { return checkHTTP(ctx, address(addr)) },
		"resp": checkRESP,
		"grpc": driveAll,
	}
	for server := range makers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			protocol, name, _ := strings.Cut(server, " ")
			stdin, stop := io.Pipe()
			lines, stdout := io.Pipe()
			done := make(chan error, 1)
			go func() {
				err := serve(protocol, name, stdout, stdin)
				_ = stdout.CloseWithError(err)
				done <- err
			}()
			line, err := bufio.NewReader(lines).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if err := asks[protocol](t.Context(), strings.TrimSpace(line)); err != nil {
				t.Error(err)
			}
			_ = stop.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	if err := serve("http", "nobody", io.Discard, strings.NewReader("")); err == nil {
		t.Error("no error for a server that does not exist")
	}
}

// driveAll asks in every shape. On a busy machine the first slice may be over before
// anybody asked.
func driveAll(ctx context.Context, addr string) error {
	for _, s := range shapes {
		for slice := 20 * time.Millisecond; ; slice *= 2 {
			_, err := s.drive(ctx, addr, 100, slice)
			if err == nil {
				break
			}
			if slice > 10*time.Second {
				return err
			}
		}
	}
	return nil
}
