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

// openTLS returns the configuration of the public servers, nil for plain TCP. A
// connection shows the certificate that is a.certificate when it begins.
func (a *App) openTLS() (*tls.Config, error) {
	c := a.cfg.TLS
	pair, err := certificate(c)
	if err != nil || pair == nil {
		return nil, err
	}
	a.certificate.Store(pair)
	t := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil },
	}
	if c.ClientCA == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, &config.Error{Key: "tls.client-ca", Value: c.ClientCA, Limit: err.Error()}
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, &config.Error{Key: "tls.client-ca", Value: c.ClientCA, Limit: "must hold a certificate in PEM form"}
	}
	return t, nil
}
