package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
)

// httpNode is a node that is asked over HTTP/1.1.
//
// It writes requests itself, and lets net/http only parse replies: one goroutine per
// connection, and half the CPU time of http.Client, which has to share two cores with
// the server that is measured.
type httpNode struct {
	url     *url.URL
	address string // host:port
	timeout time.Duration
	token   string // "": none is shown
	tls     *tls.Config
}

func newHTTPNode(text string, timeout time.Duration, token string, secure *tls.Config) (*httpNode, error) {
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		return nil, leaf.BadField("url", u.Scheme+"://"+u.Host, "must have no user and no password; --auth-token-file names the file of a token")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, leaf.BadField("url", config.Redact(text), "must be http://HOST:PORT or https://HOST:PORT, with a path if a proxy needs one")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return &httpNode{u, net.JoinHostPort(u.Hostname(), port), timeout, token, secure}, nil
}

func (n *httpNode) name() string { return n.url.String() }

func (n *httpNode) conn(count int) benchConn {
	return &httpConn{node: n, count: count, requests: map[benchTarget][]byte{}}
}

// httpConn is one keep-alive connection.
type httpConn struct {
	node     *httpNode
	count    int
	requests map[benchTarget][]byte // whole, ready to send

	conn   net.Conn // nil while there is none
	in     *bufio.Reader
	body   []byte
	ranges []leaf.Range
}

func (c *httpConn) request(what benchTarget) []byte {
	text, ok := c.requests[what]
	if ok {
		return text
	}
	path, query, fields := "/api/segment/get/"+url.PathEscape(what.key), "", ""
	switch {
	case what.snowflake:
		path = "/api/snowflake/get/" + what.key
	case what.sequence != "":
		path = "/v1/sequence/next/" + url.PathEscape(what.sequence) + "/" + what.entity
	}
	if c.count > 1 {
		query, fields = "?count="+strconv.Itoa(c.count), "Accept: application/json\r\n"
	}
	if c.node.token != "" {
		fields += "Authorization: Bearer " + c.node.token + "\r\n"
	}
	path = strings.TrimSuffix(c.node.url.EscapedPath(), "/") + path
	text = []byte("GET " + path + query + " HTTP/1.1\r\nHost: " + c.node.url.Host + "\r\n" + fields + "\r\n")
	c.requests[what] = text
	return text
}

func (c *httpConn) take(what benchTarget) ([]leaf.Range, error) {
	deadline := time.Now().Add(c.node.timeout)
	kept := c.conn != nil
	ranges, began, err := c.attempt(what, deadline)
	// The server may have closed an idle connection just now. It has seen no request
	// then, or at worst IDs are lost.
	if e, ok := errors.AsType[*benchError](err); ok && e.broken && kept && !began && e.kind != kindTimeout {
		ranges, _, err = c.attempt(what, deadline)
	}
	return ranges, err
}

// attempt sends a request once; began says whether a reply came.
func (c *httpConn) attempt(what benchTarget, deadline time.Time) (_ []leaf.Range, began bool, err error) {
	if err := c.open(deadline); err != nil {
		return nil, false, c.breaks(err)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, false, c.breaks(err)
	}
	if _, err := c.conn.Write(c.request(what)); err != nil {
		return nil, false, c.breaks(err)
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, false, c.breaks(err)
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, true, c.breaks(err)
	}
	err = c.readBody(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, true, c.breaks(err)
	}
	if resp.Close {
		c.close()
	}
	if resp.StatusCode != http.StatusOK {
		return nil, true, statusError(what, resp.StatusCode, c.body)
	}
	c.ranges, err = parseIDs(c.ranges[:0], c.body, c.count)
	if err != nil {
		return nil, true, err
	}
	return c.ranges, true, nil
}

func (c *httpConn) open(deadline time.Time) error {
	if c.conn != nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	var err error
	if c.node.url.Scheme == "https" {
		d := tls.Dialer{Config: c.node.tls}
		c.conn, err = d.DialContext(ctx, "tcp", c.node.address)
	} else {
		var d net.Dialer
		c.conn, err = d.DialContext(ctx, "tcp", c.node.address)
	}
	if err != nil {
		c.conn = nil
		return err
	}
	if c.in == nil {
		c.in = bufio.NewReaderSize(c.conn, 32<<10)
	} else {
		c.in.Reset(c.conn)
	}
	return nil
}

// readBody reads a reply into c.body, as far as a reply of count IDs can reach.
func (c *httpConn) readBody(in io.Reader) error {
	c.body = c.body[:0]
	limit := 24*c.count + 64<<10
	for {
		if len(c.body) > limit {
			return errLongReply
		}
		if len(c.body) == cap(c.body) {
			c.body = append(c.body, 0)[:len(c.body)]
		}
		n, err := in.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *httpConn) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

const (
	kindTimeout   = "timeout"
	kindMalformed = "malformed reply"
)

var errLongReply = errors.New("reply too long")

// breaks gives the connection up and names what happened to it.
func (c *httpConn) breaks(err error) error {
	c.close()
	kind := "connection lost"
	var final error
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &cert):
		kind = "certificate not trusted"
		final = fmt.Errorf("%w; if the certificate is right, name its file, or that of its authority, with --endpoint-ca, or a name of it with --endpoint-server-name", err)
	case errors.As(err, &plain):
		kind = "no TLS"
		final = fmt.Errorf("%w; the server does not speak TLS there: use http://", err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		kind = kindTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		kind = "connection refused"
	case errors.As(err, &dns):
		kind = "name not found"
	case errors.Is(err, errLongReply):
		kind = kindMalformed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
	case errors.As(err, &op) && op.Op == "dial":
		kind = "cannot connect"
	default:
		kind = kindMalformed
	}
	return &benchError{kind: kind, broken: true, final: final}
}
