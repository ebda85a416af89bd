package httpd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// appendID appends one ID in decimal. It is the FastHandler, and what the
// net/http path does for the same request.
func (c client) appendID(ctx context.Context, mode Mode, key string, body []byte) (_ []byte, err error) {
	defer recoverTo(&err)
	id, err := c.issuer(mode).Next(ctx, key)
	if err != nil {
		return body, accept.Ended(err)
	}
	return strconv.AppendInt(body, id, 10), nil
}

// serveIDs answers an ID route.
func (a *api) serveIDs(mode Mode) handler {
	return func(w http.ResponseWriter, r *http.Request, c client, key string) error {
		return c.serveIDs(w, r, mode, key)
	}
}

// serveIDs answers as the Java server does unless a count is given: one ID is bare digits
// in every media type. RestTemplate and Feign read them as a number if they are JSON.
func (c client) serveIDs(w http.ResponseWriter, r *http.Request, mode Mode, key string) error {
	n, batch, err := parseCount(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := leaf.ValidateTag(key); err != nil {
		return err
	}
	contentType := contentTypeText
	if prefersJSON(r.Header["Accept"]) {
		contentType = contentTypeJSON
	}
	if !batch {
		body, err := c.appendID(r.Context(), mode, key, nil)
		if err != nil {
			return err
		}
		setHeader(w, contentType)
		w.Write(body)
		return nil
	}
	ranges, err := c.issuer(mode).NextN(r.Context(), key, n)
	if err != nil {
		return accept.Ended(err)
	}
	setHeader(w, contentType)
	if contentType == contentTypeJSON {
		writeIDs(w, ranges, `{"ids":[`, `"`, `"`, ",", "]}\n")
	} else {
		writeIDs(w, ranges, "", "", "\n", "", "")
	}
	return nil
}

func setHeader(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Cache-Control"] = []string{"no-store"}
}

// parseCount reads the query of an ID route; batch says that a count was given. Like the
// Java server it ignores other parameters, but for a text that is no query: a count may be
// lost in it.
func parseCount(query string) (n int, batch bool, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, false, leaf.BadField("query", query, "must be name=value pairs")
	}
	counts, ok := values["count"]
	if !ok {
		return 1, false, nil
	}
	limit := fmt.Sprintf("must be one number from 1 to %d", leaf.MaxBatch)
	if len(counts) > 1 {
		return 0, false, leaf.BadField("count", counts, limit)
	}
	// ParseUint takes no sign, unlike Atoi.
	count, err := strconv.ParseUint(counts[0], 10, 32)
	if err != nil || count < 1 || count > leaf.MaxBatch {
		return 0, false, leaf.BadField("count", counts[0], limit)
	}
	return int(count), true, nil
}

// writeIDs writes all IDs of ranges, each between before and after, sep between
// two of them. It writes piecemeal: a full batch has 2 MB, and thousands of
// clients may ask for one at the same time.
func writeIDs(w http.ResponseWriter, ranges []leaf.Range, open, before, after, sep, end string) {
	const piece = 8 << 10
	out := append(make([]byte, 0, 256), open...)
	first := true
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			if !first {
				out = append(out, sep...)
			}
			first = false
			out = append(out, before...)
			out = strconv.AppendInt(out, id, 10)
			out = append(out, after...)
			if len(out) >= piece {
				if _, err := w.Write(out); err != nil {
					return // the client is gone, its IDs are lost
				}
				out = out[:0]
			}
		}
	}
	w.Write(append(out, end...))
}
