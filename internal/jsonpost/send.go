package jsonpost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// ErrRequest says that no request can be made of this body or URL, for any receiver.
var ErrRequest = errors.New("the request cannot be made")

// longestReply is how much of a reply is read.
const longestReply = 64 << 10

// NewClient returns a client with connections of its own.
func NewClient() *http.Client {
	return &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Send posts a body and returns the status of the reply. An error that is not ErrRequest says that
// no reply came; whether the body has arrived is not known then.
func Send(ctx context.Context, c *http.Client, to string, body any) (status int, err error) {
	content, err := json.Marshal(body)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(content))
	if err != nil {
		return 0, ErrRequest // err shows the URL
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		if shown, ok := errors.AsType[*url.Error](err); ok {
			err = shown.Err
		}
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, longestReply)
	return resp.StatusCode, nil
}
