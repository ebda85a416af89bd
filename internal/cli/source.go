package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/segment"
)

// sourceFlags say where another service counts, and which tag has the numbers of which counter.
type sourceFlags struct {
	Kind     string   `arg:"" enum:"tinyid,cosid,fork,autoincrement" help:"The other service: tinyid (didi/tinyid, table tiny_id_info), cosid (Ahoo-Wang/CosId, table cosid), fork (leaf_alloc of the Java server or a fork of it, in another database), autoincrement (AUTO_INCREMENT columns, identity columns, sequences)."`
	From     []string `sep:"none" secret:"" placeholder:"URL" help:"Its database: mysql://user:password@host:3306/db or postgres://user:password@host:5432/db. The server that it writes to, never a replica. Repeatable, where it counts in several."`
	FromFile string   `secretfile:"" placeholder:"FILE" help:"File that holds such URLs, one a line, so that no password is on the command line."`
	Tag      []string `sep:"none" placeholder:"TAG=NAME" help:"Only this tag, and how the other service calls it: its biz_type, name, biz_tag, table or sequence. TAG alone where the names are the same. Repeatable. (default: a tag for each counter of the other service)"`
}

// sourceHelp says how the database of the other service is used.
const sourceHelp = `The database of the other service is only read; a user with SELECT is enough. How each service is left, step by step, and how to go back: docs/MIGRATION.md.`

func (f *sourceFlags) open(p Process, s *settings, command string) (takeover.Source, error) {
	urls := slices.Clone(f.From)
	if f.FromFile != "" {
		lines, err := linesOf("--from-file", f.FromFile)
		if err != nil {
			return nil, err
		}
		urls = append(urls, lines...)
	}
	if len(urls) == 0 {
		return nil, &usageError{errors.New("expected the database of the other service: --from URL or --from-file FILE"), "leaf " + command + " --help"}
	}
	l, err := s.load(p)
	if err != nil {
		return nil, err
	}
	return app.OpenSources(f.Kind, urls, l.Config)
}

// wanted returns the tag of each counter that is asked for, nil if all are.
func (f *sourceFlags) wanted() (tagOf map[string]string, names []string, err error) {
	if len(f.Tag) == 0 {
		return nil, nil, nil
	}
	tagOf = map[string]string{}
	for _, text := range f.Tag {
		tag, name, _ := strings.Cut(text, "=")
		if name = cmp.Or(name, tag); tagOf[name] != "" {
			return nil, nil, leaf.BadField("--tag", text, "must be TAG or TAG=NAME, with each name once")
		}
		if err := leaf.ValidateTag(tag); err != nil {
			return nil, nil, err
		}
		tagOf[name], names = tag, append(names, name)
	}
	return tagOf, names, nil
}

// numbering is the counters of the other service that hand out the numbers of one tag.
type numbering struct {
	tag      string
	counters []takeover.Counter
}

// read reads the counters, sorted by tag.
func (f *sourceFlags) read(ctx context.Context, source takeover.Source) (all []numbering, err error) {
	tagOf, names, err := f.wanted()
	if err != nil {
		return nil, err
	}
	counters, err := source.Counters(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(counters, func(c takeover.Counter) bool { return c.Name == name }) {
			return nil, leaf.BadField("--tag", tagOf[name]+"="+name, "names no counter of the other service")
		}
	}
	for _, c := range counters {
		tag := c.Name
		if tagOf != nil {
			tag = tagOf[c.Name]
		}
		i := slices.IndexFunc(all, func(n numbering) bool { return n.tag == tag })
		if i < 0 {
			i, all = len(all), append(all, numbering{tag: tag})
		}
		all[i].counters = append(all[i].counters, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the other service has no counter", leaf.ErrConflict)
	}
	slices.SortFunc(all, func(a, b numbering) int { return strings.Compare(a.tag, b.tag) })
	return all, nil
}

func countersOf(all []numbering) (counters []takeover.Counter) {
	for _, n := range all {
		counters = append(counters, n.counters...)
	}
	return counters
}

// unlogged is why the audit log does not say which numbers a tag has had: it forgets, and does not tell of rows that were made or
// deleted with SQL.
const unlogged = "nodes or the database know numbers of it of which the audit log does not tell"

// rowOf asks for a tag, and for what the audit log tells of its numbers.
func rowOf(ctx context.Context, b manage.Backend, tag string) (row takeover.Row, err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		row.Problem = fmt.Sprintf("its name is no tag: %v; name one with --tag TAG=NAME", err)
		return row, nil
	}
	if of, _, _, part := segment.ParsePart(tag); part {
		row.Exists, row.Problem = true, fmt.Sprintf("it is one row of the tag %s, which lives in several databases: its other rows would go on below. Make the tag with leaf tag create TAG --start N, with N above all numbers of the other service. "+
			"If its rows are there, run for each of them, and again while it prints a node as not told: leaf tag repair TAG --above N, where TAG is the row", printable(of))
		return row, nil
	}
	t, err := manage.Ask(ctx, b, manage.GetTag{Name: tag})
	missing := errors.Is(err, leaf.ErrUnknownTag)
	if err != nil && !missing {
		return row, err
	}
	row = takeover.Row{Exists: !missing, MaxID: t.MaxID}
	if !missing && (t.State != manage.TagOK || t.MaxID < 0) {
		row.Problem = fmt.Sprintf("the state of tag %s is %s; see leaf tag show TAG, and repair it first", printable(tag), t.State)
		return row, nil
	}
	entries, err := auditEntries(ctx, b, manage.ListAudit{Object: manage.ObjectOfTag(tag)}, math.MaxInt)
	if err != nil {
		row.Unknown = fmt.Sprintf("the audit log, which says where the tag began, cannot be read: %v", err)
		return row, ctx.Err()
	}
	if row.Lowest = takeover.Lowest(entries); missing {
		row.Deleted = takeover.Deleted(entries)
	}
	maxID := t.MaxID
	if missing {
		maxID = -1
	}
	issued, known := takeover.Issued(entries, maxID)
	lowest := maxID
	for _, r := range issued {
		lowest = min(lowest, r.Lo)
	}
	switch row.Issued = issued; {
	case !known && row.Exists:
		row.Unknown = "the audit log does not say where the tag began"
	case !known && row.Deleted:
		row.Unknown = "the audit log does not say where the tag began and ended"
	case 0 < t.Fence && t.Fence <= lowest: // equal where leaf tag create named it
		row.Lowest, row.Unknown = 0, unlogged
	}
	return row, nil
}
