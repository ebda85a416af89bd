package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// ErrNoNode means that no process listens on the socket: no node runs in this data
// directory, or it is just starting or stopping.
var ErrNoNode = errors.New("admin: no node is running")

const (
	// maxReply bounds a reply in bytes: a list of about two million tags.
	maxReply = 512 << 20
	// clientTimeout ends a call to a node that hangs. The server gives up earlier.
	clientTimeout = readTimeout + handlerTimeout + 2*readTimeout
)

// Client is the manage.Backend of a running node, over the socket in its data directory or over its
// TCP port. Beside its errors Do may return ErrNoNode or ErrNoListener;
// leaf.ErrBadRequest or leaf.ErrConflict if this user cannot reach the socket; or
// leaf.ErrNotReady if the node refused the token or the connection broke. After a broken
// connection the outcome of a change is unknown.
type Client struct {
	to   target
	http *http.Client
}

// target is where a Client sends its requests, and all that differs between a socket and an
// endpoint.
type target struct {
	base  url.URL // scheme and host
	token string  // "": none is needed

	// fault is the error for a request that no reply came to, and refusal for a reply that
	// is an error.
	fault   func(error) error
	refusal func(*http.Response, error) error
}

// NewClient returns a client for the node that runs in dataDir. It does not
// connect yet.
func NewClient(dataDir string) *Client {
	path, err := SocketPath(dataDir)
	fault := func(err error) error { return socketFault(path, err) }
	if err != nil { // the path cannot be used
		fault = func(error) error { return err }
	}
	to := target{url.URL{Scheme: "http", Host: "leaf"}, "", fault, func(_ *http.Response, err error) error { return err }}
	return newClient(to, &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}})
}

func newClient(to target, transport *http.Transport) *Client {
	return &Client{to: to, http: &http.Client{
		Timeout:       clientTimeout,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this node
	}}
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Do implements manage.Backend. It sends one request and never repeats it: http.Transport
// itself repeats only what it could not write at all or what is idempotent.
func (c *Client) Do(ctx context.Context, request any) (any, error) {
	op, err := manage.Of(request)
	if err == nil {
		err = manage.Validate(request)
	}
	if err != nil {
		return nil, err
	}
	query, body := write(request)
	var payload io.Reader
	if body {
		text, err := json.Marshal(request)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		payload = bytes.NewReader(text)
	}
	method, path, _ := strings.Cut(op.Route, " ")
	u := c.to.base
	u.Path, u.RawQuery = path, query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), payload)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if c.to.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.to.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if urlErr, ok := errors.AsType[*url.Error](err); ok {
			err = urlErr.Err // its own text repeats the address
		}
		return nil, c.to.fault(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, c.to.refusal(resp, problem.Read(resp))
	}
	reply := reflect.New(op.Reply)
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(reply.Interface()); err != nil {
		return nil, fmt.Errorf("%w: read the node's reply: %w", leaf.ErrNotReady, err)
	}
	return reply.Elem().Interface(), nil
}

func socketFault(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s", ErrNoNode, path)
	case errors.Is(err, syscall.ENOTDIR):
		return leaf.BadField("data-dir", filepath.Dir(path), "must be a folder")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this user may not enter the data directory %s, or not use its socket: run the command as the user that the node runs as", leaf.ErrConflict, filepath.Dir(path))
	}
	return fmt.Errorf("%w: the node at %s did not answer: %w", leaf.ErrNotReady, path, err)
}
