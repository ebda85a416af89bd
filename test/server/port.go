package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports of servers lie below the range from which systems take the ports of
// outgoing connections. From inside it, a client that dials while the server is
// down could be given the server's own port, and the restart would fail.
const lowestPort, highestPort = 20000, 30000

// freePort returns a port of 127.0.0.1 on which nobody listens at the moment.
func freePort(ctx context.Context) (int, error) {
	var errs []error
	for range 100 {
		port := lowestPort + rand.N(highestPort-lowestPort)
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", address(port))
		if err == nil {
			return port, l.Close()
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("find a free port: %w", errors.Join(errs[:3]...))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
