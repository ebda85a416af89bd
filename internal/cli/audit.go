package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/manage"
)

type auditCmd struct {
	storeFlags
	jsonFlag
	Tag   string `placeholder:"TAG" help:"Only changes of this tag and its limit."`
	Who   string `placeholder:"NAME" help:"Only changes of this one, as the column WHO has it."`
	Since string `placeholder:"TIME" help:"Only changes from then on: a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h."`
	Limit int    `default:"50" placeholder:"N" help:"How many changes, the newest ones. (default 50; 1 to 100000)"`
}

// Help implements kong.HelpProvider.
func (auditCmd) Help() string {
	return `Every administrative change is recorded, whether it came from a command, the console or the administration port, and whether it was carried out: tags and limits, repairs, weights, drains, reloads, worker IDs, and schema apply --accept-rule. Issued IDs are not.

WHO is the user of the socket, what the request was admitted by, or "offline:" with the user of a command that worked without a node. The log is the table leaf_audit of the first database, so all nodes share it; changes stay for audit.keep (90 days). Without the table a change is carried out all the same, and the log of the node warns.

  leaf audit --tag order --since 24h
  leaf audit --endpoint https://node.example:8081 --admin-token-file token --json`
}

// maxAudit bounds what one command reads.
const maxAudit = 100_000

// Run shows changes.
func (c *auditCmd) Run(ctx context.Context, p Process) error {
	if c.Limit < 1 || c.Limit > maxAudit {
		return leaf.BadField("limit", c.Limit, fmt.Sprintf("must be 1 to %d", maxAudit))
	}
	q := manage.ListAudit{Since: c.Since, Who: c.Who}
	if ago, err := time.ParseDuration(c.Since); err == nil {
		q.Since = time.Now().Add(-ago).UTC().Format(time.RFC3339Nano)
	}
	if c.Tag != "" {
		q.Object = manage.ObjectOfTag(c.Tag)
	}
	return with(ctx, p, c, func(b manage.Backend) error {
		all, err := auditEntries(ctx, b, q, c.Limit)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(p.Stdout, all)
		}
		return printAudit(p.Stdout, all)
	})
}

// auditEntries reads page after page, most entries at the most.
func auditEntries(ctx context.Context, b manage.Backend, q manage.ListAudit, most int) ([]audit.Entry, error) {
	all := []audit.Entry{}
	for {
		q.Limit = min(most-len(all), audit.MaxPage)
		page, err := manage.Ask(ctx, b, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Entries...)
		if q.Before = page.Next; q.Before == "" || len(all) >= most {
			return all, nil
		}
	}
}

func printAudit(w io.Writer, all []audit.Entry) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no change is recorded")
		return err
	}
	rows := [][]string{{"TIME", "WHO", "FROM", "OPERATION", "OBJECT", "CHANGE", "RESULT"}}
	for _, e := range all {
		rows = append(rows, []string{e.Time.Format(timeFormat), printable(e.Who), printable(e.Address), e.Operation, printable(e.Object), changeText(e), printable(e.Result)})
	}
	return printTable(w, rows)
}

// changeText shows each member of both sides, such as "step 1000 → 2000".
func changeText(e audit.Entry) string {
	was, is := members(e.From), members(e.To)
	if was == nil || is == nil { // cut, because it was too long
		return printable(e.From + " → " + e.To)
	}
	names := map[string]bool{}
	for _, side := range []map[string]any{was, is} {
		for name := range side {
			names[name] = true
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		text := name
		if v, ok := was[name]; ok {
			text += " " + valueText(v)
		}
		if v, ok := is[name]; ok {
			if _, both := was[name]; both {
				text += " →"
			}
			text += " " + valueText(v)
		}
		all = append(all, text)
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}

// members returns what a text of JSON has, nil for another text.
func members(text string) map[string]any {
	all := map[string]any{}
	if text != "" && json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all
}

func valueText(v any) string {
	if text, ok := v.(string); ok {
		return printable(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?" // it was JSON before
	}
	return string(text)
}
