package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// tokenGroup are the commands about named tokens.
type tokenGroup struct {
	Create tokenCreateCmd `cmd:"" help:"Make a named token, and print it once."`
	List   tokenListCmd   `cmd:"" help:"List the named tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Make a named token invalid."`
}

type tokenCreateCmd struct {
	storeFlags
	smallJSONFlag
	Name string   `arg:"" help:"Name of the token: letters, digits, dots, hyphens and underlines."`
	Role []string `required:"" placeholder:"ROLE" help:"What it may do: issue, snowflake, read or admin. Repeatable."`
	Tags []string `placeholder:"PATTERN" help:"With the role issue: only these tags, each a name, or the beginning of names and *. Repeatable. (default: all tags, and snowflake mode)"`
}

// Help implements kong.HelpProvider.
func (tokenCreateCmd) Help() string {
	return `The token is printed once, and can be read nowhere afterwards: only its SHA-256 is kept, in the table leaf_token of the first database, or in the file of auth.named. Nodes ask for named tokens where auth.named is set, and accept a new one within limit.refresh.

Roles:
  issue      take IDs: of all tags and of snowflake mode, or with --tags of these tags
  snowflake  take IDs of snowflake mode
  read       see tags, limits, nodes and the console, and change nothing
  admin      administration; read with it

  (umask 077; leaf token create shop --role issue --tags 'order*' > shop.token)
  leaf token create grafana --role read

A client shows it as Authorization: Bearer over HTTP and gRPC, and with AUTH NAME TOKEN over the Redis protocol. Limits know the client by the name of its token. To exchange a token, make another one under another name, give it to the client, and revoke the first.`
}

// Run makes a token.
func (c *tokenCreateCmd) Run(ctx context.Context, p Process) error {
	roles := c.Role
	if len(c.Tags) > 0 {
		roles = nil
		for _, role := range c.Role {
			if role != auth.RoleIssue {
				roles = append(roles, role)
			}
		}
		if len(roles) == len(c.Role) {
			return leaf.BadField("tags", strings.Join(c.Tags, ","), "are for --role issue")
		}
		for _, pattern := range c.Tags {
			roles = append(roles, auth.RoleIssue+":"+pattern)
		}
	}
	secret, digest := auth.NewSecret()
	return with(ctx, p, c, func(b manage.Backend) error {
		made, err := manage.Ask(ctx, b, manage.CreateToken{Name: c.Name, Digest: digest, Roles: roles})
		if err != nil {
			return err
		}
		if list, err := manage.Ask(ctx, b, manage.ListTokens{}); err == nil && !list.Asked {
			fmt.Fprintln(p.Stderr, "leaf: warning: auth.named is not set in this configuration, so a node with it does not ask for named tokens")
		}
		if c.JSON {
			return printJSON(p.Stdout, struct {
				manage.Token
				Secret string `json:"secret"`
			}{made, secret})
		}
		_, err = fmt.Fprintln(p.Stdout, secret)
		return err
	})
}

type tokenListCmd struct {
	storeFlags
	smallJSONFlag
}

// Run lists the tokens.
func (c *tokenListCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ListTokens{}, func(w io.Writer, list manage.TokenList) error {
		if len(list.Tokens) == 0 {
			_, err := fmt.Fprintln(w, "no named tokens; leaf token create makes one")
			return err
		}
		rows := [][]string{{"NAME", "CREATED", "ROLES"}}
		for _, t := range list.Tokens {
			rows = append(rows, []string{t.Name, t.Created.Format("2006-01-02T15:04:05Z"), strings.Join(t.Roles, " ")})
		}
		return printTable(w, rows)
	})
}

type tokenRevokeCmd struct {
	storeFlags
	smallJSONFlag
	Name string `arg:"" help:"Name of the token."`
}

// Help implements kong.HelpProvider.
func (tokenRevokeCmd) Help() string {
	return `The token is invalid at once on the node that does it, also on connections that are open, and on the other nodes after limit.refresh (2 s) and one reading of the database. A node that cannot reach the database keeps the tokens that it has read last: its log says since when.`
}

// Run revokes a token.
func (c *tokenRevokeCmd) Run(ctx context.Context, p Process) error {
	return with(ctx, p, c, func(b manage.Backend) error {
		if err := manage.Tell(ctx, b, manage.RevokeToken{Name: c.Name}); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.Stdout, map[string]any{"name": c.Name, "revoked": true})
		}
		_, err := fmt.Fprintf(p.Stdout, "revoked %s\n", c.Name)
		return err
	})
}
