package app

import (
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/config"
)

// tokens are those that are valid now. Reload exchanges them.
type tokens struct{ clients, admin *auth.Tokens }

func newTokens(c config.Config) tokens {
	return tokens{auth.NewTokens(c.Auth.Tokens...), auth.NewTokens(c.Admin.Tokens...)}
}
