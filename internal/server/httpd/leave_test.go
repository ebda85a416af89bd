package httpd_test

import (
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// TestLeave: every reply ends its connection and says so, on both paths, also an error;
// new connections are served.
func TestLeave(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil)}))
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		requests := []string{fastGET("order"), slowGET("order"), "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", fastGET("slow")}
		before := make([]*client, len(requests))
		for i, r := range requests {
			before[i] = p.dial(t)
			for range 2 {
				before[i].send(r)
				if r := before[i].reply(); r.close {
					t.Errorf("before: %v", r)
				}
			}
		}
		s.Leave()
		for i, r := range requests {
			for _, c := range []*client{before[i], p.dial(t), p.dial(t)} {
				c.send(r)
				if r := c.reply(); !r.close {
					t.Errorf("without Connection: close: %v", r)
				}
				c.expectEnd()
			}
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
