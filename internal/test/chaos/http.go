package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// httpSource sends requests over one connection.
type httpSource struct {
	node   *node
	stream stream
	http   *http.Client
}

func newHTTP(n *node, s stream) source {
	return &httpSource{n, s, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
}

func (c *httpSource) close() { c.http.CloseIdleConnections() }

func (c *httpSource) fetch(ctx context.Context) (ids []int64, outcome string, err error) {
	target := "http://" + c.node.addr + c.stream.path
	if c.stream.count > 1 {
		target += "?count=" + strconv.Itoa(c.stream.count)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, cut, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, lost(err), nil // an outcome, which is counted
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, lost(err), nil // a reply that was cut off is not used, not even in part
	}
	if resp.StatusCode != http.StatusOK {
		var problem struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(body, &problem); err != nil || problem.Code == "" {
			return nil, resp.Status, fmt.Errorf("%s of %s: an error without a code: %q", resp.Status, target, body)
		}
		return nil, problem.Code, nil
	}
	for line := range strings.FieldsSeq(string(body)) {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, resp.Status, fmt.Errorf("%s: %w", target, err)
		}
		ids = append(ids, id)
	}
	if len(ids) != c.stream.count {
		return nil, resp.Status, fmt.Errorf("%s: %d IDs, asked for %d", target, len(ids), c.stream.count)
	}
	return ids, ok, nil
}

// lost names how a reply was lost.
func lost(err error) string {
	var n net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return noListen
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return timeout
	}
	return cut
}
