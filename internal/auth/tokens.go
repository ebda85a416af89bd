package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// Tokens are the tokens and certificates of which a client must show one. The zero value asks for none.
// All methods are safe for concurrent use.
type Tokens struct {
	valid        atomic.Pointer[[]fixed]           // of the configuration
	grant        *Grant                            // of those; nil: everything but administration
	named        *Named                            // nil: there are none
	certificates atomic.Pointer[map[string]*Grant] // by the name in them; nil: none has roles
	guard        *Guard                            // nil: wrong tokens are not slowed down
}

// fixed is a token of the configuration.
type fixed struct {
	digest
	strong int // 1: too long to be guessed
}

// digest stands for a token, so that a comparison does not show the token's length.
type digest [sha256.Size]byte

// NewTokens returns a set of tokens that open everything but administration. Without a token it
// asks for none.
func NewTokens(tokens ...string) *Tokens {
	t := &Tokens{grant: everything("auth.token")}
	if len(tokens) > 0 {
		t.set(tokens)
	}
	return t
}

// NewAdminTokens is NewTokens for administrators.
func NewAdminTokens(tokens ...string) *Tokens {
	t := NewTokens(tokens...)
	t.grant = newGrant("", "admin.token", Roles{Read: true, Admin: true})
	return t
}

// WithNamed returns t, which also accepts the tokens of n, and certificates by the name in
// them. Call it before t is used.
func (t *Tokens) WithNamed(n *Named, certificates map[string]Roles) *Tokens {
	t.named = n
	if len(certificates) > 0 {
		t.certificates.Store(&map[string]*Grant{})
		t.ReplaceCertificates(certificates)
	}
	return t
}

// WithGuard returns t, which slows down the guessing of tokens. Call it before t is used.
func (t *Tokens) WithGuard(g *Guard) *Tokens {
	t.guard = g
	return t
}

func (t *Tokens) set(tokens []string) {
	all := make([]fixed, len(tokens))
	for i, token := range tokens {
		all[i].digest = sha256.Sum256([]byte(token))
		if len(token) >= guessable {
			all[i].strong = 1
		}
	}
	t.valid.Store(&all)
}

// Replace puts other tokens in the place of those of the configuration. If no client needed
// one with an empty list, that is refused with leaf.ErrBadRequest and changes nothing.
func (t *Tokens) Replace(tokens []string) error {
	if len(tokens) == 0 && t.valid.Load() != nil {
		return fmt.Errorf("%w: the last token cannot be removed while the node runs, because then no client would need one", leaf.ErrBadRequest)
	}
	if len(tokens) > 0 {
		t.set(tokens)
	}
	return nil
}

// ReplaceCertificates puts other roles of certificates into force, also on connections that are
// open. If no certificate had roles, or none would have, it changes nothing: clients that have
// shown nothing else would lose or get everything. It is not safe for concurrent use with itself.
func (t *Tokens) ReplaceCertificates(certificates map[string]Roles) {
	before := t.certificates.Load()
	if before == nil || len(certificates) == 0 {
		return
	}
	// A name that is gone stays, revoked: connections keep its grant, and it may come back.
	next := maps.Clone(*before)
	for name, g := range next {
		if _, ok := certificates[name]; !ok {
			g.revoked.Store(true)
		}
	}
	for name, roles := range certificates {
		if g := next[name]; g != nil {
			g.renew(roles)
		} else {
			next[name] = newGrant(name, fmt.Sprintf("certificate %q", name), roles)
		}
	}
	t.certificates.Store(&next)
}

// certified returns the grant of a certificate by its name, nil if it has none.
func (t *Tokens) certified(name string) *Grant {
	all := t.certificates.Load()
	if all == nil {
		return nil
	}
	if g := (*all)[name]; g != nil && !g.revoked.Load() {
		return g
	}
	return nil
}

// Required reports whether a client must show a token or a certificate.
func (t *Tokens) Required() bool {
	return t.valid.Load() != nil || t.named != nil || t.certificates.Load() != nil
}

// Fixed reports whether there are tokens of the configuration.
func (t *Tokens) Fixed() bool { return t.valid.Load() != nil }

// MayRead returns an error unless a client may see what the node shows of its tags.
func (t *Tokens) MayRead(c leaf.Credentials) error {
	grant, err := t.Identify(c)
	if err != nil {
		return err
	}
	return grant.Read()
}

// Identify returns what a client may do that shows a token or a certificate. A token goes
// before a certificate. Errors: leaf.ErrUnauthenticated if something must be shown, and what is
// shown is not valid; leaf.ErrThrottled if too many wrong tokens came from the address;
// leaf.ErrNotReady while the named tokens are not known. It costs one hash, and one comparison
// for each token of the configuration.
func (t *Tokens) Identify(c leaf.Credentials) (*Grant, error) {
	if !t.Required() {
		return t.fixed(), nil
	}
	if c.Token == "" {
		if g := t.certified(c.Certificate); g != nil {
			return g, nil
		}
		return nil, fmt.Errorf("%w: this server asks for a token", leaf.ErrUnauthenticated)
	}
	d := digest(sha256.Sum256([]byte(c.Token)))
	found, strong := 0, 0
	if valid := t.valid.Load(); valid != nil {
		for i := range *valid {
			same := subtle.ConstantTimeCompare(d[:], (*valid)[i].digest[:])
			found |= same
			strong |= same & (*valid)[i].strong
		}
	}
	if strong == 1 {
		return t.fixed(), nil
	}
	if found == 0 && t.named != nil {
		if g, err := t.named.find(d); g != nil || err != nil {
			return g, err
		}
	}
	wait := t.guard.blocked(c.Address)
	if found == 1 && wait == 0 {
		return t.fixed(), nil
	}
	if wait = t.guard.failed(c.Address); wait > 0 {
		return nil, tooMany(wait)
	}
	return nil, fmt.Errorf("%w: the token is not one that this server accepts", leaf.ErrUnauthenticated)
}

var anyone = everything("everyone")

func (t *Tokens) fixed() *Grant {
	if t.grant == nil {
		return anyone
	}
	return t.grant
}
