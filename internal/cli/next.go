package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/opaque"
)

type nextCmd struct {
	storeFlags
	jsonFlag
	Tag       string `arg:"" optional:"" help:"Name of the tag. Not with --snowflake."`
	Count     int    `name:"count" short:"n" default:"1" placeholder:"N" help:"How many. (default 1; 1 to 100000)"`
	Snowflake bool   `help:"IDs of snowflake mode. Only a running node has a worker ID for them."`
	Format    string `placeholder:"FORMAT" words:"number,text,opaque,opaque-base62,opaque-crockford" help:"How the IDs are written, as a node writes them for its clients: number, text (by the format of the tag), opaque, opaque-base62 or opaque-crockford. The opaque ones need --keys. (default: number)"`
	Keys      string `secretfile:"" placeholder:"FILE" help:"File of keys for --format, as leaf opaque key makes it: the one of the nodes (opaque.keys)."`
}

// Run issues IDs.
func (c *nextCmd) Run(ctx context.Context, p Process) error {
	if c.Count < 1 || c.Count > leaf.MaxBatch {
		return leaf.BadField("count", c.Count, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	write, err := c.writer()
	switch {
	case err != nil:
		return err
	case c.Snowflake && c.Tag != "":
		return leaf.BadField("tag", c.Tag, "must not be given with --snowflake, which knows no tags")
	case c.Snowflake && c.Format == "text":
		return leaf.BadField("format", c.Format, "is for tags of segment mode: IDs of snowflake mode have no tag, whose format would count")
	case c.Snowflake:
		return issue(ctx, p, c, &nodeFlags{Settings: c.Settings}, manage.NextSnowflake{N: c.Count}, write.fixed)
	case c.Tag == "":
		return &usageError{fmt.Errorf(`expected "<tag>" or --snowflake`), "leaf next --help"}
	}
	writer := write.fixed
	if c.Format == "text" {
		writer = c.textWriter
	}
	return issue(ctx, p, c, c, manage.Next{Tag: c.Tag, N: c.Count}, writer)
}

// idWriter appends the text of an ID.
type idWriter func(dst []byte, id int64) ([]byte, error)

// fixed is the writer of a request whatever it works on.
func (w idWriter) fixed(context.Context, manage.Backend) (idWriter, error) { return w, nil }

// textWriter writes the IDs of a tag by its format.
func (c *nextCmd) textWriter(ctx context.Context, b manage.Backend) (idWriter, error) {
	t, err := templateOf(ctx, b, c.Tag)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, id int64) ([]byte, error) {
		dst, err := t.Append(dst, id)
		if err != nil {
			return nil, fmt.Errorf("%w: %w; the IDs of this request are lost", leaf.ErrBadRequest, err)
		}
		return dst, nil
	}, nil
}

// templateOf returns the template of a tag's format.
func templateOf(ctx context.Context, b manage.Backend, name string) (*number.Template, error) {
	tag, err := manage.Ask(ctx, b, manage.GetTag{Name: name})
	if err != nil {
		return nil, err
	}
	return tag.Template(name)
}

// opaqueTexts are the formats of opaque IDs, as nodes have them.
var opaqueTexts = map[string]opaque.Text{"opaque": opaque.Decimal, "opaque-base62": opaque.Base62, "opaque-crockford": opaque.Crockford}

// writer returns what writes the IDs, before any is taken.
func (c *nextCmd) writer() (idWriter, error) {
	text, isOpaque := opaqueTexts[c.Format]
	switch {
	case !isOpaque && c.Format != "" && c.Format != "number" && c.Format != "text":
		return nil, leaf.BadField("format", c.Format, "must be number, text, opaque, opaque-base62 or opaque-crockford")
	case !isOpaque && c.Keys != "":
		return nil, &usageError{errors.New("--keys is for --format opaque, opaque-base62 or opaque-crockford"), "leaf next --help"}
	case !isOpaque:
		return func(dst []byte, id int64) ([]byte, error) { return strconv.AppendInt(dst, id, 10), nil }, nil
	}
	if c.Keys == "" {
		return nil, &usageError{fmt.Errorf("--format %s needs the keys of the nodes: --keys FILE", c.Format), "leaf next --help"}
	}
	ring, err := opaque.ReadRing(c.Keys)
	if err != nil {
		return nil, err
	}
	tag := c.Tag
	if c.Snowflake {
		tag = snowflakeKey // as a node does
	}
	permutation := ring.Tag(tag)
	return func(dst []byte, id int64) ([]byte, error) {
		encoded, err := permutation.Encode(id)
		if err != nil {
			return nil, fmt.Errorf("%w; the IDs of this request are lost", err)
		}
		return text.Append(dst, encoded), nil
	}, nil
}

func issue[Part any](ctx context.Context, p Process, c *nextCmd, from opener, request manage.Request[Part, manage.Issued], writer func(context.Context, manage.Backend) (idWriter, error)) error {
	return with(ctx, p, from, func(b manage.Backend) error {
		write, err := writer(ctx, b) // before an ID is taken
		if err != nil {
			return err
		}
		issued, err := manage.Ask(ctx, b, request)
		if err != nil {
			return err
		}
		var all []byte // one ID a line; nothing is printed if one cannot be written
		for id := range leaf.IDs(issued.Ranges) {
			if all, err = write(all, id); err != nil {
				return err
			}
			all = append(all, '\n')
		}
		if c.JSON {
			return printJSON(p.Stdout, map[string]any{"ids": strings.Fields(string(all))})
		}
		return printLines(p.Stdout, all)
	})
}
