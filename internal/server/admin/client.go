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
	"strconv"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// ErrNoNode means that nobody listens on the socket: no node runs in this data
// directory, or it is just starting or stopping.
var ErrNoNode = errors.New("admin: no node is running")

const (
	// maxReply bounds a reply in bytes: a list of about two million tags.
	maxReply = 512 << 20
	// clientTimeout ends a call to a node that hangs. The server gives up earlier.
	clientTimeout = readTimeout + handlerTimeout + 2*readTimeout
)

// Client implements NodeBackend over the socket of a running node. Beside its
// errors every method may return ErrNoNode, or leaf.ErrNotReady if the
// connection broke, after which the outcome of a change is unknown.
type Client struct {
	path string
	err  error // the path cannot be used
	http *http.Client
}

var _ manage.NodeBackend = (*Client)(nil)

// NewClient returns a client for the node that runs in dataDir. It does not
// connect yet.
func NewClient(dataDir string) *Client {
	path, err := SocketPath(dataDir)
	var dialer net.Dialer
	return &Client{path: path, err: err, http: &http.Client{
		Timeout: clientTimeout,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", path)
			},
		},
	}}
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Info implements Backend.
func (c *Client) Info(ctx context.Context) (manage.Info, error) {
	return call[manage.Info](ctx, c, http.MethodGet, "/v1/info", nil, nil)
}

// Tags implements Backend.
func (c *Client) Tags(ctx context.Context) ([]manage.Tag, error) {
	return call[[]manage.Tag](ctx, c, http.MethodGet, "/v1/tags", nil, nil)
}

// Tag implements Backend.
func (c *Client) Tag(ctx context.Context, name string) (manage.Tag, error) {
	return call[manage.Tag](ctx, c, http.MethodGet, "/v1/tag", url.Values{"tag": {name}}, nil)
}

// CreateTag implements Backend.
func (c *Client) CreateTag(ctx context.Context, tag manage.NewTag) (manage.Tag, error) {
	if err := errors.Join(leaf.ValidateTag(tag.Name), checkText("description", tag.Description)); err != nil {
		return manage.Tag{}, err
	}
	return call[manage.Tag](ctx, c, http.MethodPost, "/v1/tag", nil, tag)
}

// SetTag implements Backend.
func (c *Client) SetTag(ctx context.Context, name string, change manage.TagChange) (manage.Tag, error) {
	if change.Description != nil {
		if err := checkText("description", *change.Description); err != nil {
			return manage.Tag{}, err
		}
	}
	return call[manage.Tag](ctx, c, http.MethodPatch, "/v1/tag", url.Values{"tag": {name}}, change)
}

// DeleteTag implements Backend.
func (c *Client) DeleteTag(ctx context.Context, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/v1/tag", url.Values{"tag": {name}}, nil)
	return err
}

// RepairTag implements Backend.
func (c *Client) RepairTag(ctx context.Context, name string, above int64) (manage.Repair, error) {
	return call[manage.Repair](ctx, c, http.MethodPost, "/v1/repair", url.Values{"tag": {name}}, repairRequest{above})
}

// PlanRepair implements Backend. It has a method of its own on the wire: a node that
// does not know it refuses, and repairs nothing.
func (c *Client) PlanRepair(ctx context.Context, name string, above int64) (manage.RepairPlan, error) {
	return call[manage.RepairPlan](ctx, c, http.MethodGet, "/v1/repair", url.Values{"tag": {name}, "above": {strconv.FormatInt(above, 10)}}, nil)
}

// Next implements Backend.
func (c *Client) Next(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	reply, err := call[nextReply](ctx, c, http.MethodPost, "/v1/next", url.Values{"tag": {tag}, "n": {strconv.Itoa(n)}}, nil)
	return reply.Ranges, err
}

// NextSnowflake implements NodeBackend.
func (c *Client) NextSnowflake(ctx context.Context, n int) ([]leaf.Range, error) {
	reply, err := call[nextReply](ctx, c, http.MethodPost, "/v1/next-snowflake", url.Values{"n": {strconv.Itoa(n)}}, nil)
	return reply.Ranges, err
}

// Workers implements WorkerBackend.
func (c *Client) Workers(ctx context.Context) (manage.Workers, error) {
	return call[manage.Workers](ctx, c, http.MethodGet, "/v1/workers", nil, nil)
}

// ReleaseWorker implements WorkerBackend.
func (c *Client) ReleaseWorker(ctx context.Context, number int64) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/worker/release", url.Values{"worker": {strconv.FormatInt(number, 10)}}, nil)
	return err
}

// InitWorkers implements WorkerBackend.
func (c *Client) InitWorkers(ctx context.Context) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/worker/init", nil, nil)
	return err
}

// ConfirmClock implements NodeBackend.
func (c *Client) ConfirmClock(ctx context.Context) (time.Time, error) {
	reply, err := call[clockReply](ctx, c, http.MethodPost, "/v1/worker/confirm-clock", nil, nil)
	return reply.Now, err
}

// Limits implements LimitBackend.
func (c *Client) Limits(ctx context.Context) (manage.Limits, error) {
	return call[manage.Limits](ctx, c, http.MethodGet, "/v1/limits", nil, nil)
}

// SetTagLimit implements LimitBackend.
func (c *Client) SetTagLimit(ctx context.Context, tag string, change manage.LimitChange) (manage.Limit, error) {
	return call[manage.Limit](ctx, c, http.MethodPatch, "/v1/limit/tag", url.Values{"tag": {tag}}, change)
}

// SetClientLimit implements LimitBackend.
func (c *Client) SetClientLimit(ctx context.Context, client string, change manage.LimitChange) (manage.Limit, error) {
	return call[manage.Limit](ctx, c, http.MethodPatch, "/v1/limit/client", url.Values{"client": {client}}, change)
}

// Nodes implements NodeLister.
func (c *Client) Nodes(ctx context.Context) (manage.Nodes, error) {
	return call[manage.Nodes](ctx, c, http.MethodGet, "/v1/nodes", nil, nil)
}

// SetWeight implements Weigher.
func (c *Client) SetWeight(ctx context.Context, weight int) (manage.Node, error) {
	return call[manage.Node](ctx, c, http.MethodPost, "/v1/node/weight", url.Values{"weight": {strconv.Itoa(weight)}}, nil)
}

// Drain implements Drainer.
func (c *Client) Drain(ctx context.Context, delay time.Duration) error {
	query := url.Values{}
	if delay >= 0 {
		query.Set("delay", delay.String())
	}
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/drain", query, nil)
	return err
}

// call sends one request and never repeats it: http.Transport itself repeats only
// what it could not write at all or what is idempotent.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (reply T, err error) {
	if c.err != nil {
		return reply, c.err
	}
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return reply, fmt.Errorf("encode request: %w", err)
		}
		payload = bytes.NewReader(text)
	}
	u := url.URL{Scheme: "http", Host: "leaf", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), payload)
	if err != nil {
		return reply, fmt.Errorf("make request: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return reply, c.transportError(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return reply, problem.Read(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&reply); err != nil {
		return reply, fmt.Errorf("%w: read the node's reply: %w", leaf.ErrNotReady, err)
	}
	return reply, nil
}

func (c *Client) transportError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w at %s", ErrNoNode, c.path)
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err // its own text repeats an address that nobody typed
	}
	return fmt.Errorf("%w: the node at %s did not answer: %w", leaf.ErrNotReady, c.path, err)
}
