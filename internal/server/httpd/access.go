package httpd

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

const (
	// bearer starts the value of the field Authorization that carries a token. Its case
	// does not matter, but the fast path understands it as it is written everywhere.
	bearer = "Bearer "

	// maxClientName bounds the value of the field Leaf-Client, in characters.
	maxClientName = 128
)

// client is what a request may take its IDs from.
type client struct{ issuers *leaf.Issuers }

func (c client) issuer(mode Mode) leaf.Issuer {
	if mode == Snowflake {
		return c.issuers.Snowflake
	}
	return c.issuers.Segment
}

// open is the Opener of the fast path.
func (a *api) open(shown leaf.Credentials) (_ FastHandler, err error) {
	c, err := a.admit(shown)
	if err != nil {
		return nil, err
	}
	return c.appendID, nil
}

// admit asks Access.
func (a *api) admit(shown leaf.Credentials) (_ client, err error) {
	defer recoverTo(&err)
	issuers, err := a.access.Open(shown)
	if err != nil {
		return client{}, err
	}
	return client{issuers}, nil
}

// credentials returns what r shows. A field that is there twice is refused, because a
// proxy before us may have looked at the other one. Authorization with a scheme other
// than Bearer is ignored: it is meant for a proxy.
func credentials(r *http.Request) (shown leaf.Credentials, err error) {
	shown.Address = accept.AddressIn(r.RemoteAddr)
	shown.Certificate, _ = r.Context().Value(certificateKey{}).(string)
	if shown.Token, err = auth.Bearer(r.Header["Authorization"]); err != nil {
		return shown, err
	}
	shown.Name, err = auth.Single("Leaf-Client", r.Header["Leaf-Client"])
	if err != nil {
		return shown, err
	}
	if len(shown.Name) > maxClientName && utf8.RuneCountInString(shown.Name) > maxClientName || !utf8.ValidString(shown.Name) {
		return shown, leaf.BadField("leaf-client", shown.Name, fmt.Sprintf("must have at most %d characters of UTF-8", maxClientName))
	}
	return shown, nil
}
