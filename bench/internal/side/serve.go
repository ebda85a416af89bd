package side

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Server is what the servers under measurement have in common.
type Server interface {
	Serve() error
	Shutdown(ctx context.Context) error
}

// Serve is the other end of Start: it runs s, prints addr to stdout, and stops s when
// stdin ends.
func Serve(s Server, addr net.Addr, stdout io.Writer, stdin io.Reader) error {
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	fmt.Fprintln(stdout, addr)
	_, _ = io.Copy(io.Discard, stdin)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.Shutdown(ctx)
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
