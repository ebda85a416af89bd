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
	return authorities(clientCAKey, c.ClientCA)
}

// orderCAKey is the key of the file that othersAuthorities reads.
const orderCAKey = "order.ca"

// othersAuthorities reads the certificates that must have signed those of the other nodes, nil for those that the system trusts.
func (a *App) othersAuthorities(c config.Config) (*x509.CertPool, error) {
	if a.secure == nil || c.Order.CA == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	return authorities(orderCAKey, c.Order.CA)
}

// authorities reads the certificates in the file that a key names.
func authorities(key, file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, &config.Error{Key: key, Value: file, Limit: err.Error()}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &config.Error{Key: key, Value: file, Limit: "must hold a certificate in PEM form"}
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
	clients, err := clientAuthorities(c)
	if err != nil {
		return nil, err
	}
	a.certificate.Store(pair)
	t := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil },
	}
	if clients == nil {
		return t, nil
	}
	a.authorities.Store(clients)
	t.ClientAuth = tls.RequireAndVerifyClientCert
	each := t.Clone()
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := each.Clone()
		own.ClientCAs = a.authorities.Load()
		return own, nil
	}
	return t, nil
}

// administrationTLS returns the configuration of the administrator's port, nil for plain HTTP
// on loopback. It asks for no certificate, because the token says who an administrator is.
func (a *App) administrationTLS() *tls.Config {
	if a.secure == nil || !a.cfg.AdminRemote() {
		return nil
	}
	return &tls.Config{MinVersion: a.secure.MinVersion, GetCertificate: a.secure.GetCertificate}
}
