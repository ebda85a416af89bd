package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// Tokens is the set of secrets of which a client must show one. The zero value asks for
// none. All methods are safe for concurrent use.
type Tokens struct{ valid atomic.Pointer[[]digest] }

// digest stands for a token, so that a comparison does not show the token's length.
type digest [sha256.Size]byte

// NewTokens returns a set. Without a token it asks for none.
func NewTokens(tokens ...string) *Tokens {
	t := &Tokens{}
	if len(tokens) > 0 {
		t.set(tokens)
	}
	return t
}

func (t *Tokens) set(tokens []string) {
	all := make([]digest, len(tokens))
	for i, token := range tokens {
		all[i] = sha256.Sum256([]byte(token))
	}
	t.valid.Store(&all)
}

// Replace puts other tokens in the place of those before. With an empty list no client
// would need a token, so it is refused with leaf.ErrBadRequest and changes nothing.
func (t *Tokens) Replace(tokens []string) error {
	if len(tokens) == 0 && t.Required() {
		return fmt.Errorf("%w: the last token cannot be removed while the node runs, because then no client would need one", leaf.ErrBadRequest)
	}
	if len(tokens) > 0 {
		t.set(tokens)
	}
	return nil
}

// Required reports whether a token must be shown.
func (t *Tokens) Required() bool { return t.valid.Load() != nil }

// Check returns leaf.ErrUnauthenticated if a token must be shown and shown is none of the
// valid ones. It costs one hash and one comparison per valid token.
func (t *Tokens) Check(shown string) error {
	valid := t.valid.Load()
	if valid == nil {
		return nil
	}
	if shown == "" {
		return fmt.Errorf("%w: this server asks for a token", leaf.ErrUnauthenticated)
	}
	d := digest(sha256.Sum256([]byte(shown)))
	found := 0
	for i := range *valid {
		found |= subtle.ConstantTimeCompare(d[:], (*valid)[i][:])
	}
	if found == 0 {
		return fmt.Errorf("%w: the token is not one that this server accepts", leaf.ErrUnauthenticated)
	}
	return nil
}
