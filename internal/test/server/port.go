package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports of servers lie below the range from which systems take the ports of
// outgoing connections. From inside it, a client that dials while the server is
// down could be given the server's own port, and the restart would fail.
const lowestPort, highestPort = 20000, 30000

// port is a port of 127.0.0.1 that is ours until release, also while nobody
// listens on it: before the server has opened it, and while the server is down.
type port struct {
	number int
	claim  io.Closer
}

// claimPort returns a port that nobody listens on and that no other process that
// uses this package has claimed.
func claimPort(ctx context.Context) (*port, error) {
	var errs []error
	for range 100 {
		number := lowestPort + rand.N(highestPort-lowestPort)
		claim, err := claimNumber(ctx, number)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", address(number))
		if err == nil {
			return &port{number, claim}, l.Close()
		}
		errs = append(errs, err, claim.Close())
	}
	return nil, fmt.Errorf("find a free port: %w", errors.Join(errs[:3]...))
}

// release makes the port anybody's. It is idempotent.
func (p *port) release() {
	if p != nil && p.claim != nil {
		_ = p.claim.Close()
		p.claim = nil
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
