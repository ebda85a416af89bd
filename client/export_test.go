package client

import "github.com/leaf-idgen/leaf/discovery"

// The seam below the flights, for nodes that live in a bubble.
type (
	Link    = link
	Request = request
)

// ErrNotServing is what Check says of a node that drains.
var ErrNotServing = errNotServing

// ErrGivenUp is the end of a request that the client itself has cut off.
var ErrGivenUp = errGivenUp

// WithLinks replaces gRPC.
func WithLinks(dial func(discovery.Node) (Link, error)) Option {
	return func(o *options) { o.dial = dial }
}

// Broken is the error of a request without an answer.
func Broken(cause error) error { return &brokenError{cause} }

// Answered is the error that a node gave.
var Answered = answered

// ParseNodes reads a node file.
var ParseNodes = parseNodes

// Lanes returns how many lanes are kept.
func (c *Client) Lanes() (n int) {
	for i := range c.lanes {
		c.lanes[i].Range(func(any, any) bool { n++; return true })
	}
	return n
}
