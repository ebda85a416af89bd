package httpd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

const (
	defaultPageLimit = 1000
	maxPageLimit     = 10_000
)

// PageRequest asks for the tags whose names come after After, in the order of the names'
// bytes, and for at most Limit of them: 1 to 10,000. After is "" for the first page; it is
// UTF-8 without the character U+0000.
type PageRequest struct {
	After string
	Limit int
}

// Page is what a PageRequest gets.
type Page struct {
	Rows any    // a list, for encoding/json
	Next string // the After of the next page, "" if this is the last one
}

// servePages answers a route whose table is read page by page: a node may have hundreds
// of thousands of tags, and a list of all of them takes 5 kB for each.
func (a *api) servePages(path string, read func(context.Context, PageRequest) (Page, error)) handler {
	return view(func(w http.ResponseWriter, r *http.Request) error {
		ask, err := parsePage(r.URL.RawQuery)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), a.viewTime)
		defer cancel()
		page, err := read(ctx, ask)
		if err != nil {
			return accept.Ended(err)
		}
		if page.Next != "" {
			query := url.Values{"after": {page.Next}, "limit": {strconv.Itoa(ask.Limit)}}
			w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, path, query.Encode()))
		}
		return writeJSON(w, http.StatusOK, page.Rows)
	})
}

// parsePage reads the query of a route with pages. It ignores other parameters.
func parsePage(query string) (ask PageRequest, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ask, leaf.BadField("query", query, "must be name=value pairs")
	}
	ask.Limit = defaultPageLimit
	if limits, ok := values["limit"]; ok {
		// ParseUint takes no sign, unlike Atoi.
		n, err := strconv.ParseUint(limits[0], 10, 32)
		if err != nil || n < 1 || n > maxPageLimit || len(limits) > 1 {
			return ask, leaf.BadField("limit", strings.Join(limits, ","), fmt.Sprintf("must be one number from 1 to %d", maxPageLimit))
		}
		ask.Limit = int(n)
	}
	if after, ok := values["after"]; ok {
		ask.After = after[0]
		if len(after) > 1 || !utf8.ValidString(ask.After) || strings.Contains(ask.After, "\x00") {
			return ask, leaf.BadField("after", strings.Join(after, ","), "must be one tag name, the last of the page before")
		}
	}
	return ask, nil
}
