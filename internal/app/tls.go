package app

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/leaf-idgen/leaf/internal/config"
)

// certificate reads the certificate and its key, nil without any.
func certificate(c config.TLS) (*tls.Certificate, error) {
	if c.Cert == "" {
		return nil, nil //nolint:nilnil // plain TCP is a valid configuration
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, &config.Error{Key: "tls.cert", Value: c.Cert, Limit: "with tls.key=" + c.Key + " must be a certificate and its key: " + err.Error()}
	}
	return &pair, nil
}

// clientCAKey is the key of the file that clientAuthorities reads.
const clientCAKey = "tls.client-ca"

// clientAuthorities reads the certificates that must have signed those of clients, nil
// without any.
func clientAuthorities(c config.TLS) (*x509.CertPool, error) {
	if c.ClientCA == "" {
		return nil, nil //nolint:nilnil // clients without a certificate are a valid configuration
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, &config.Error{Key: clientCAKey, Value: c.ClientCA, Limit: err.Error()}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &config.Error{Key: clientCAKey, Value: c.ClientCA, Limit: "must hold a certificate in PEM form"}
	}
	return pool, nil
}

// openTLS returns the configuration of the public servers, nil for plain TCP. A
// connection shows the certificate that is a.certificate when it begins, and asks its
// client for one that a.authorities have signed.
func (a *App) openTLS() (*tls.Config, error) {
	c := a.cfg.TLS
	pair, err := certificate(c)
	if err != nil || pair == nil {
		return nil, err
	}
	authorities, err := clientAuthorities(c)
	if err != nil {
		return nil, err
	}
	a.certificate.Store(pair)
	t := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil },
	}
	if authorities == nil {
		return t, nil
	}
	a.authorities.Store(authorities)
	t.ClientAuth = tls.RequireAndVerifyClientCert
	each := t.Clone()
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := each.Clone()
		own.ClientCAs = a.authorities.Load()
		return own, nil
	}
	return t, nil
}
