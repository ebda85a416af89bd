package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Token is a named token as it is kept: without its secret. Digest is the SHA-256 of the
// secret. A slow hash, such as bcrypt, protects secrets that can be guessed; one of 256 random
// bits cannot, and a slow hash would only help who floods a node with wrong tokens.
type Token struct {
	Name    string
	Digest  string // 64 hexadecimal digits
	Roles   Roles
	Created time.Time // to the second
}

// secretPrefix makes a secret known to programs that look for leaked ones.
const secretPrefix = "leaf_"

// NewSecret returns a secret of 256 random bits, and its digest.
func NewSecret() (secret, digest string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	return secret, DigestOf(secret)
}

// DigestOf returns the digest of a secret.
func DigestOf(secret string) string {
	d := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(d[:])
}

// Validate returns leaf.ErrBadRequest for a token that no store keeps.
func (t Token) Validate() error {
	if err := CheckName(t.Name); err != nil {
		return err
	}
	if _, err := digestOf(t.Digest); err != nil {
		return err
	}
	_, err := ParseRoles(t.Roles.Words())
	return err
}

func digestOf(text string) (d digest, err error) {
	if n, err := hex.Decode(d[:], []byte(text[:min(len(text), 2*len(d))])); err != nil || n != len(d) || len(text) != 2*len(d) || strings.ToLower(text) != text {
		return d, leaf.BadField("digest", "...", "must be a SHA-256 in 64 hexadecimal digits")
	}
	return d, nil
}

// Store keeps named tokens, at most MaxTokens.
type Store interface {
	// NamedTokens returns all tokens, by name. Without a table or file for them there are none.
	NamedTokens(ctx context.Context) ([]Token, error)

	// CreateToken adds a token. Errors: leaf.ErrConflict if there is one of that name, or too
	// many; segment.ErrSchema without the table leaf_token; leaf.ErrBadRequest.
	CreateToken(ctx context.Context, t Token) error

	// RevokeToken deletes a token. Errors: leaf.ErrConflict if there is none of that name.
	RevokeToken(ctx context.Context, name string) error
}

// MaxTokens bounds the memory and the reading of named tokens.
const MaxTokens = 10_000

// ErrNoToken returns the error for a name that no token has.
func ErrNoToken(name string) error {
	return fmt.Errorf("%w: there is no token %q; see leaf token list", leaf.ErrConflict, name)
}

// ErrTokenExists returns the error for a name that a token has.
func ErrTokenExists(name string) error {
	return fmt.Errorf("%w: token %q exists; revoke it first, or use another name while both are in use", leaf.ErrConflict, name)
}

// ErrTooManyTokens returns the error for one token more than MaxTokens.
func ErrTooManyTokens() error {
	return fmt.Errorf("%w: there are %d tokens, and no more are kept; revoke one first", leaf.ErrConflict, MaxTokens)
}
