package httpd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/problem"
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

// serveIDs answers an ID route as the Java server does unless the query asks for more: one ID is
// bare digits in every media type. RestTemplate and Feign read them as a number if they are JSON.
func (a *api) serveIDs(mode Mode) handler {
	return func(w http.ResponseWriter, r *http.Request, c client, open []string) error {
		key := open[0]
		ask, err := parseQuery(r.URL.RawQuery)
		if err != nil {
			return err
		}
		if err := leaf.ValidateTag(key); err != nil {
			return err
		}
		f, err := a.format(mode, key, ask.format)
		if err != nil {
			return err
		}
		contentType := contentTypeText
		if prefersJSON(r.Header["Accept"]) {
			contentType = contentTypeJSON
		}
		if !ask.batch {
			return c.serveOne(w, r, mode, key, f, contentType)
		}
		ranges, err := c.nextN(r.Context(), mode, key, ask.count, f)
		if err != nil {
			return err
		}
		writeBatch(w, contentType, ranges, f)
		return nil
	}
}

// format returns how a client wants the IDs of a key written.
func (a *api) format(mode Mode, key, name string) (*format.Format, error) {
	if mode == Snowflake {
		return a.formats.Snowflake(name)
	}
	return a.formats.Segment(key, name)
}

// serveOne answers with one ID. A text of an opaque ID is a string in JSON, also in decimal: an
// opaque ID is not a number to calculate with.
func (c client) serveOne(w http.ResponseWriter, r *http.Request, mode Mode, key string, f *format.Format, contentType string) error {
	if f == nil {
		body, err := c.appendID(r.Context(), mode, key, nil)
		if err != nil {
			return err
		}
		setHeader(w, contentType)
		w.Write(body)
		return nil
	}
	id, err := c.issuer(mode).Next(r.Context(), key)
	if err != nil {
		return accept.Ended(err)
	}
	one := []leaf.Range{{Lo: id, Hi: id + 1}}
	if err := f.Check(one...); err != nil {
		return err
	}
	quote := ""
	if contentType == contentTypeJSON {
		quote = `"`
	}
	setHeader(w, contentType)
	writeIDs(w, one, f, frame{before: quote, after: quote})
	return nil
}

// nextN takes n IDs that f can write.
func (c client) nextN(ctx context.Context, mode Mode, key string, n int, f *format.Format) (_ []leaf.Range, err error) {
	defer recoverTo(&err)
	ranges, err := c.issuer(mode).NextN(ctx, key, n)
	if err != nil {
		return nil, accept.Ended(err)
	}
	return ranges, f.Check(ranges...)
}

func setHeader(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Cache-Control"] = []string{problem.NoStore}
}

// query is what the query of an ID route asks for.
type query struct {
	count  int
	batch  bool   // a count was given
	format string // "" if none was given
}

// parseQuery reads the query of an ID route. Like the Java server it ignores other parameters, but
// for a text that is no query: a count may be lost in it.
func parseQuery(text string) (ask query, err error) {
	ask.count = 1
	values, err := url.ParseQuery(text)
	if err != nil {
		return ask, leaf.BadField("query", text, "must be name=value pairs")
	}
	if formats, ok := values["format"]; ok {
		if len(formats) > 1 || formats[0] == "" {
			return ask, leaf.BadField("format", strings.Join(formats, ","), "must be one word")
		}
		ask.format = formats[0]
	}
	counts, ok := values["count"]
	if !ok {
		return ask, nil
	}
	count := counts[0]
	if len(counts) > 1 {
		count = fmt.Sprint(counts)
	}
	ask.batch = true
	ask.count, err = parseCount(count)
	return ask, err
}

// frame is what stands around the IDs of a reply: open, each ID between before and after, sep between two of them, end.
type frame struct{ open, before, after, sep, end string }

// writeBatch answers with all IDs of ranges, which f can write. The reply says how long it is: without that, a client
// of HTTP/1.0, as many proxies are, takes a reply that was cut off for a whole one, and its last
// line, a part of an ID, for an ID, which is another one's.
func writeBatch(w http.ResponseWriter, contentType string, ranges []leaf.Range, f *format.Format) {
	around := frame{after: "\n"}
	if contentType == contentTypeJSON {
		around = frame{`{"ids":[`, `"`, `"`, ",", "]}\n"}
	}
	var count, texts int
	for _, r := range ranges {
		count += int(r.Len())
		texts += f.Length(r)
	}
	each := len(around.before) + len(around.after) + len(around.sep)
	length := len(around.open) + texts + count*each - len(around.sep) + len(around.end)
	setHeader(w, contentType)
	w.Header()["Content-Length"] = []string{strconv.Itoa(length)}
	writeIDs(w, ranges, f, around)
}

// writeIDs writes all IDs of ranges, which f can write. It writes piecemeal: a full batch has 2 MB, and thousands of
// clients may ask for one at the same time.
func writeIDs(w http.ResponseWriter, ranges []leaf.Range, f *format.Format, around frame) {
	const piece = 8 << 10
	out := append(make([]byte, 0, 256), around.open...)
	first := true
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			if !first {
				out = append(out, around.sep...)
			}
			first = false
			out = append(out, around.before...)
			out = f.Append(out, id)
			out = append(out, around.after...)
			if len(out) >= piece {
				if _, err := w.Write(out); err != nil {
					return // the client is gone, its IDs are lost
				}
				out = out[:0]
			}
		}
	}
	_, _ = w.Write(append(out, around.end...)) // as above
}
