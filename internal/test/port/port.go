// Package port gives tests TCP ports of 127.0.0.1 that stay theirs while nobody listens
// on them: before a server has opened its port, while it is down, or for the whole of a
// test that needs an address at which nobody answers. A port that a test found free,
// closed and opened again later may belong to somebody else by then.
//
// It promises:
//
//  1. No other process that uses this package gets the port before Release (Linux;
//     elsewhere two processes may choose the same one at the same moment).
//  2. No outgoing connection gets it: it lies below the range that systems take those
//     ports from.
//  3. A process that dies releases its ports.
package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Systems take the ports of outgoing connections from 32768 or 49152 up.
const lowest, highest = 20000, 30000

// Port is a claimed port.
type Port struct {
	Number int
	claim  io.Closer
}

// Claim returns a port that nobody listens on and that nobody else has claimed.
func Claim(ctx context.Context) (*Port, error) {
	var errs []error
	for range 100 {
		number := lowest + rand.N(highest-lowest)
		claim, err := claimNumber(ctx, number)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p := &Port{number, claim}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", p.Addr())
		if err == nil {
			return p, l.Close()
		}
		p.Release()
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("find a free port: %w", errors.Join(errs[:3]...))
}

// Addr returns the host and port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Listen listens on the port. For a moment after a listener of this process was closed,
// the port may be in use although it is claimed: a child that is being started has a copy
// of the listener until its program begins. Listen waits for that moment to pass, for 5 s
// at most.
func (p *Port) Listen(ctx context.Context) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", p.Addr())
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Release makes the port anybody's. It is idempotent, and does nothing on nil.
func (p *Port) Release() {
	if p != nil && p.claim != nil {
		_ = p.claim.Close()
		p.claim = nil
	}
}

// Unused returns an address on which nobody listens until the test ends, unless the test
// itself does.
func Unused(t testing.TB) string {
	t.Helper()
	p, err := Claim(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p.Addr()
}
