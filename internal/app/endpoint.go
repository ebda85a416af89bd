package app

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// ClientTLS returns how a client of this machine speaks TLS with a node, by endpoint-ca and
// endpoint-server-name.
func ClientTLS(l *config.Loaded) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: l.EndpointServerName, NextProtos: []string{"http/1.1"}}
	if l.EndpointCA == "" {
		return c, nil
	}
	var err error
	c.RootCAs, err = authorities("endpoint-ca", l.EndpointCA)
	return c, err
}

// OpenEndpoint returns the Backend of the node at the endpoint of a configuration. It opens no
// data directory and no database, whether the node answers or not, and does not connect yet.
// The caller calls done at the end.
func OpenEndpoint(l *config.Loaded) (b manage.Backend, done func() error, err error) {
	if len(l.Admin.Tokens) == 0 {
		return b, nil, &config.Error{Key: "endpoint", Value: l.Endpoint, Source: l.From("endpoint"), Limit: "needs a token: name a file that holds a value of the node's admin.token with --admin-token-file or LEAF_ADMIN_TOKEN_FILE"}
	}
	var roots *x509.CertPool
	if l.EndpointCA != "" {
		if roots, err = authorities("endpoint-ca", l.EndpointCA); err != nil {
			return b, nil, err
		}
	}
	client, err := admin.NewEndpointClient(admin.Endpoint{
		URL: l.Endpoint, Token: l.Admin.Tokens[0], TokenFrom: l.From("admin.token"), Roots: roots, ServerName: l.EndpointServerName,
	})
	if err != nil {
		return b, nil, err
	}
	return client, client.Close, nil
}
