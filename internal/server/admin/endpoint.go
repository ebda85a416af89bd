package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// ErrNoListener means that no process listens at an endpoint: the node has ended, or has not
// begun, or the address is another one.
var ErrNoListener = errors.New("admin: no process listens")

// dialTimeout ends the attempt to connect to an endpoint, and then that to agree on TLS.
const dialTimeout = 5 * time.Second

// Endpoint is the TCP port of a node on any machine.
type Endpoint struct {
	URL        string         // https://HOST:PORT; http only on loopback
	Token      string         // that the node accepts; required
	TokenFrom  string         // where Token was set, for errors
	Roots      *x509.CertPool // that may have signed the node's certificate. Default: those of the system.
	ServerName string         // in the node's certificate. Default: the host of URL.

	// Dial opens a connection. Default: TCP, without a proxy.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewEndpointClient returns a client for the node at an endpoint. It does not connect yet.
// Error: leaf.ErrBadRequest if the token could be read on its way.
func NewEndpointClient(e Endpoint) (*Client, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !accept.IsLoopback(u.Host)) {
		return nil, leaf.BadField("endpoint", e.URL, "must begin with https://, or lead to loopback")
	}
	if e.Dial == nil {
		e.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	dial := e.Dial
	if u.Scheme == "http" {
		dial = e.dialLoopback
	}
	return newClient(target{url.URL{Scheme: u.Scheme, Host: u.Host}, e.Token, e.fault, e.refusal}, &http.Transport{
		DialContext:         dial,
		TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig:     &tls.Config{RootCAs: e.Roots, ServerName: e.ServerName, MinVersion: tls.VersionTLS12},
	}), nil
}

// dialLoopback is Dial without TLS: a name server may say that localhost is another machine.
func (e Endpoint) dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := e.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		_ = conn.Close()
		return nil, fmt.Errorf("%s leads to %s, which is not loopback; use 127.0.0.1", address, at)
	}
	return conn, nil
}

// fault says why no reply came.
func (e Endpoint) fault(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w at %s: the node does not run, or its admin.addr is another one: %w", ErrNoListener, e.URL, err)
	}
	hint := ""
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		hint = "; the port has no TLS. A node's port for administration has TLS where tls.cert is set and admin.addr is not on loopback"
	case strings.HasPrefix(e.URL, "http:") && errors.Is(err, io.EOF):
		hint = "; a port with TLS needs https://"
	case isType[x509.UnknownAuthorityError](err):
		hint = "; if the certificate is self-signed or from an authority of your own, name that certificate with --endpoint-ca"
	case isType[x509.HostnameError](err):
		hint = "; use a name of the certificate in --endpoint, or give it as --endpoint-server-name"
	}
	return fmt.Errorf("%w: the node at %s did not answer: %w%s", leaf.ErrNotReady, e.URL, err, hint)
}

// refusal says what is wrong with the endpoint where err is not about the operation.
func (e Endpoint) refusal(resp *http.Response, err error) error {
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w: the node at %s refuses the token in %s: %s", leaf.ErrNotReady, e.URL, e.TokenFrom, err.Error())
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("%w: %s leads on to %q, which no command follows with a token: give the address of the node itself", leaf.ErrNotReady, e.URL, resp.Header.Get("Location"))
	case resp.StatusCode != http.StatusInternalServerError && leaf.ClassOf(err).Err == nil:
		return fmt.Errorf("%w: %s is not the admin.addr of a node, or speaks TLS and needs https://, or its node has another version: %w", leaf.ErrNotReady, e.URL, err)
	}
	return err
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
