package config

import (
	"path/filepath"
	"strings"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// NamedStore is the value of auth.named for the table leaf_token.
const NamedStore = "store"

const namedFile = "file:"

// NamedFile returns the path of the file with the named tokens, "" if they are in no file.
func (a Auth) NamedFile() string {
	path, ok := strings.CutPrefix(a.Named, namedFile)
	if !ok {
		return ""
	}
	return path
}

// Grants returns the roles of certificates, by name.
func (a Auth) Grants() (map[string]auth.Roles, error) {
	all := map[string]auth.Roles{}
	for _, value := range a.Certificates {
		at := strings.LastIndexByte(value, '=')
		if at < 1 {
			return nil, &Error{Key: CertificateKey, Value: value, Limit: "must be NAME=ROLES, such as shop.example=issue:order*"}
		}
		name := value[:at]
		roles, err := auth.ParseRoles(strings.Fields(value[at+1:]))
		switch {
		case err != nil:
			return nil, &Error{Key: CertificateKey, Value: value, Limit: err.Error()}
		case roles.Admin:
			return nil, &Error{Key: CertificateKey, Value: value, Limit: "must not have the role admin: admin.addr asks for no certificate"}
		}
		if _, twice := all[name]; twice {
			return nil, &Error{Key: CertificateKey, Value: value, Limit: "must name each certificate once"}
		}
		all[name] = roles
	}
	return all, nil
}

// CertificateKey names the key with the roles of certificates.
const CertificateKey = "auth.certificate"

func (c Config) validateAuth() (errs []error) {
	if _, err := c.Auth.Grants(); err != nil {
		errs = append(errs, err)
	}
	if len(c.Auth.Certificates) > 0 && c.TLS.ClientCA == "" {
		errs = append(errs, &Error{Key: CertificateKey, Value: c.Auth.Certificates[0], Limit: "needs tls.client-ca, or no client shows a certificate"})
	}
	switch path := c.Auth.NamedFile(); {
	case c.Auth.Named == "":
	case path != "":
		if !filepath.IsAbs(path) {
			errs = append(errs, &Error{Key: "auth.named", Value: c.Auth.Named, Limit: "must have an absolute path behind file:"})
		}
	case c.Auth.Named != NamedStore:
		errs = append(errs, &Error{Key: "auth.named", Value: c.Auth.Named, Limit: "must be store or file:PATH"})
	case !c.NeedsStores():
		errs = append(errs, &Error{Key: "auth.named", Value: c.Auth.Named, Limit: "needs a database, and this node uses none; use file:PATH"})
	}
	return errs
}

// OpenAddress returns the address of a server for clients that other machines reach and that
// asks for nothing, "" if there is none.
func (c Config) OpenAddress() (key, addr string) {
	if len(c.Auth.Tokens) > 0 || c.Auth.Named != "" || c.TLS.ClientCA != "" {
		return "", ""
	}
	for _, l := range c.Listeners() {
		if l.Section != SectionAdmin && l.Addr != AddrOff && !accept.IsLoopback(l.Addr) {
			return l.Section + ".addr", l.Addr
		}
	}
	return "", ""
}

// checkOpen refuses a server that other machines reach without a token or certificate, unless
// auth.open says that the operator wants it.
func (c Config) checkOpen() error {
	key, addr := c.OpenAddress()
	if key == "" || c.Auth.Open {
		return nil
	}
	return &Error{Key: key, Value: addr, Limit: "can be reached from other machines, and nothing says who may take IDs: set auth.token (a file: auth.token-file), auth.named or tls.client-ca; " +
		"or, if the network lets in only those who may, auth.open=true"}
}
