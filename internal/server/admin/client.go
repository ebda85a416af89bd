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

// Client is the Backend of the node that runs in a data directory, over its socket. Beside
// its errors every method may return ErrNoNode; leaf.ErrBadRequest or leaf.ErrConflict if
// this user cannot reach the socket; or leaf.ErrNotReady if the connection broke, after which
// the outcome of a change is unknown.
type Client struct {
	manage.Backend

	path string
	err  error // the path cannot be used
	http *http.Client
}

// NewClient returns a client for the node that runs in dataDir. It does not
// connect yet.
func NewClient(dataDir string) *Client {
	path, err := SocketPath(dataDir)
	var dialer net.Dialer
	c := &Client{path: path, err: err, http: &http.Client{
		Timeout: clientTimeout,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", path)
			},
		},
	}}
	c.Backend = manage.Backend{Caller: c}
	return c
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Do implements manage.Caller. It sends one request and never repeats it: http.Transport
// itself repeats only what it could not write at all or what is idempotent.
func (c *Client) Do(ctx context.Context, request any) (any, error) {
	op, err := manage.Of(request)
	if err == nil {
		err = manage.Validate(request)
	}
	if err == nil {
		err = c.err // the path cannot be used
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
	u := url.URL{Scheme: "http", Host: "leaf", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), payload)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, problem.Read(resp)
	}
	reply := reflect.New(op.Reply)
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(reply.Interface()); err != nil {
		return nil, fmt.Errorf("%w: read the node's reply: %w", leaf.ErrNotReady, err)
	}
	return reply.Elem().Interface(), nil
}

func (c *Client) transportError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w at %s", ErrNoNode, c.path)
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return leaf.BadField("data-dir", filepath.Dir(c.path), "must be a folder")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this user may not enter the data directory %s, or not use its socket: run the command as the user that the node runs as", leaf.ErrConflict, filepath.Dir(c.path))
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err // its own text repeats an address that the user did not type
	}
	return fmt.Errorf("%w: the node at %s did not answer: %w", leaf.ErrNotReady, c.path, err)
}
