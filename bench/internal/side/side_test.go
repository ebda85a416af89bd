package side_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/bench/internal/side"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestMain is the server, too: the tests start this program again.
func TestMain(m *testing.M) {
	switch os.Getenv("SIDE") {
	case "":
		os.Exit(m.Run())
	case "mute":
		return
	case "greedy":
		serve(make([]byte, 64<<20))
	default:
		serve(nil)
	}
}

func serve(held []byte) {
	for i := 0; i < len(held); i += 1 << 10 { // so that every page exists
		held[i] = 1
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if err := side.Serve(listener{ln}, ln.Addr(), os.Stdout, os.Stdin); err != nil {
		panic(err)
	}
	if len(held) > 0 && held[0] == 0 {
		panic("not held")
	}
}

// listener is a server that accepts connections and answers nothing.
type listener struct{ net.Listener }

func (l listener) Serve() error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		conn.Close()
	}
}

func (l listener) Shutdown(context.Context) error { return l.Close() }

func TestStartAndStop(t *testing.T) {
	t.Setenv("SIDE", "serve")
	p, err := side.Start(t.Context(), "it", os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, known := p.CPU(); !known {
		t.Error("CPU() is not known")
	}
	if err := p.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

func TestMemory(t *testing.T) {
	const mb = 1 << 20
	t.Setenv("SIDE", "greedy")
	p, err := side.Start(t.Context(), "greedy", os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if now, peak, err := p.Memory(); err != nil || now < 64*mb || peak < now || peak > 512*mb {
		t.Errorf("Memory() = %d MB, at most %d MB, %v; want more than the 64 MB that it holds", now/mb, peak/mb, err)
	}
	if err := p.ForgetPeak(); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := p.Memory(); err == nil {
		t.Error("the memory of a process that has ended is known")
	}
}

func TestNoAddress(t *testing.T) {
	t.Setenv("SIDE", "mute")
	if _, err := side.Start(t.Context(), "mute", os.Args[0]); err == nil || !strings.Contains(err.Error(), "mute prints no address") {
		t.Errorf("got %v", err)
	}
	if _, err := side.Start(t.Context(), "missing", "/does/not/exist"); err == nil || !strings.Contains(err.Error(), "start missing") {
		t.Errorf("got %v", err)
	}
}

func TestDaemon(t *testing.T) {
	t.Parallel()
	addr := port.Unused(t)
	asked := 0
	d := side.Daemon{Name: "sleeper", Addr: addr, Command: []string{"sh", "-c", "trap 'exit 0' INT; echo here; while :; do sleep 0.01; done"}}
	var out strings.Builder
	d.Output = &out
	d.Ready = func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	}
	p, err := d.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil || asked != 3 || p.Addr != addr || out.String() != "here\n" {
		t.Errorf("Stop: %v; asked %d times, at %s, %q", err, asked, p.Addr, out.String())
	}

	ctx, cancel := context.WithCancel(t.Context())
	d.Ready = func(context.Context) error {
		cancel()
		return errors.New("never")
	}
	if _, err := d.Start(ctx); err == nil || !strings.Contains(err.Error(), "is not ready: never") {
		t.Errorf("got %v", err)
	}
}

func TestEngine(t *testing.T) {
	t.Parallel()
	access, stop, err := side.Engine()
	if err != nil {
		t.Fatal(err)
	}
	issuers, err := access.Open(leaf.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	seen := map[int64]bool{}
	for range 100 {
		id, err := issuers.Segment.Next(ctx, side.Tag)
		if err != nil || seen[id] {
			t.Fatal(fmt.Errorf("Next() = %d, %w; seen before: %v", id, err, seen[id]))
		}
		seen[id] = true
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
