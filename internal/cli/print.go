package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printable returns text as it is if a reader of a table can tell it from
// everything else, and as a quoted Go string if not.
func printable(text string) string {
	plain := func(r rune) bool { return unicode.IsPrint(r) && r != '"' && r != '\\' && r != unicode.ReplacementChar }
	for _, r := range text {
		if !plain(r) {
			return strconv.Quote(text)
		}
	}
	if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "  ") {
		return strconv.Quote(text)
	}
	return text
}

// printLines prints lines with one ID each, some whole lines at a time, in writes that every pipe takes as a whole or not at
// all. When this process is killed, the program behind the pipe gets no part of an ID, which would be another ID.
func printLines(w io.Writer, lines []byte) error {
	const atomic = 512 // POSIX
	for len(lines) > 0 {
		n := bytes.LastIndexByte(lines[:min(len(lines), atomic)], '\n') + 1
		if _, err := w.Write(lines[:n]); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// printTable prints rows in columns, without spaces at the ends of the lines.
func printTable(w io.Writer, rows [][]string) error {
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func printTags(w io.Writer, tags []manage.Tag) error {
	stores, orders := false, false
	for _, t := range tags {
		stores, orders = stores || t.Store != "", orders || t.Order != ""
	}
	var rows [][]string
	row := func(store, order string, cells ...string) {
		if stores {
			cells = slices.Insert(cells, 4, store)
		}
		if orders {
			cells = slices.Insert(cells, 3, order)
		}
		rows = append(rows, cells)
	}
	row("STORE", "ORDER", "TAG", "MAX_ID", "STEP", "STATE", "DESCRIPTION")
	for _, t := range tags {
		description := ""
		if t.Description != "" {
			description = printable(t.Description)
		}
		name := printable(t.Name)
		if t.Rows > 0 {
			name = printable(t.Name + " (sequence)")
		}
		row(t.Store, cmp.Or(t.Order, segment.OrderPlain), name, strconv.FormatInt(t.MaxID, 10), stepText(t), stateText(t), description)
	}
	return printTable(w, rows)
}

func printTag(w io.Writer, t manage.Tag) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, value)
		}
	}
	line("tag", printable(t.Name))
	line("max_id", strconv.FormatInt(t.MaxID, 10))
	line("step", stepText(t))
	if t.Format != "" {
		line("format", printable(t.Format))
	}
	line("order", t.Order)
	if t.Period != "" {
		line("period", t.Period+" in "+cmp.Or(t.PeriodZone, "UTC"))
	}
	if t.Description != "" {
		line("description", printable(t.Description))
	}
	line("store", t.Store)
	if !t.UpdateTime.IsZero() {
		line("updated", t.UpdateTime.UTC().Format(time.RFC3339))
	}
	if t.Fence != 0 {
		line("fence", strconv.FormatInt(t.Fence, 10)+" (this node issues no new range below)")
	}
	line("state", stateText(t))
	return tw.Flush()
}

func stateText(t manage.Tag) string {
	if t.State == manage.TagLatched {
		return "latched: see leaf tag repair --help"
	}
	return t.State
}
