package httpd_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/problem"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestBehaviour: every way to ask for IDs over HTTP behaves like every other protocol.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		dialect  dialect
		secure   bool
		header   http.Header
		noCancel bool // the fast path does not watch a connection while it makes a reply
	}{
		{"text", getText, false, nil, true},
		{"text over TLS", getText, true, nil, true},
		{"text through net-http", getText, false, http.Header{"X-Slow": {"1"}}, false},
		{"JSON", getJSON, false, nil, false},
		{"next over TLS", postNext, true, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			startAs := func(tb testing.TB, a leaf.Access, c leaf.Credentials) leaf.Issuers {
				return overHTTP(tb, a, c, nil, tt.dialect, tt.secure, tt.header)
			}
			startFormats := func(tb testing.TB, a leaf.Access, k *format.Formats) servertest.Texts {
				return textsOverHTTP(overHTTP(tb, a, leaf.Credentials{}, k, tt.dialect, tt.secure, tt.header))
			}
			servertest.Options{NoCancel: tt.noCancel, StartAs: startAs, StartFormats: startFormats}.Run(t, func(tb testing.TB, a leaf.Access) leaf.Issuers {
				return startAs(tb, a, leaf.Credentials{})
			})
		})
	}
}

// overHTTP starts a server and returns a client of it.
func overHTTP(t testing.TB, a leaf.Access, c leaf.Credentials, k *format.Formats, d dialect, secure bool, header http.Header) leaf.Issuers {
	t.Helper()
	cfg := quiet(httpd.Config{Access: a, Formats: k})
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	scheme := "http"
	if secure {
		ca := servertest.NewAuthority(t)
		scheme = "https"
		cfg.TLS = overTLS(t, ca)
		transport.TLSClientConfig = &tls.Config{RootCAs: ca.Pool}
	}
	s, err := httpd.New(servertest.Listen(t, "127.0.0.1:0"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	t.Cleanup(transport.CloseIdleConnections) // before the shutdown
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if c.Token != "" {
		header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Name != "" {
		header.Set("Leaf-Client", c.Name)
	}
	w := wire{d, scheme + "://" + s.Addr().String(), &http.Client{Transport: transport}, header, "segment"}
	other := w
	other.mode = "snowflake"
	return leaf.Issuers{Segment: w, Snowflake: other}
}

// textsOverHTTP asks for texts in the dialect of issuers that overHTTP returned.
func textsOverHTTP(i leaf.Issuers) servertest.Texts {
	return func(ctx context.Context, mode, tag string, n int, name string) ([]string, error) {
		w := i.Segment.(wire)
		w.mode = mode
		count := ""
		if n > 0 {
			count = strconv.Itoa(n)
		}
		body, err := w.fetch(ctx, tag, count, name)
		if err != nil {
			return nil, err
		}
		return w.texts(body, count == "")
	}
}

// dialect is a way to ask for IDs. An empty count or format is none.
type dialect struct {
	request func(base, mode, tag, count, name string) (method, target, body string)
	accept  string
	read    func(body []byte, single bool) ([]leaf.Range, error)
	texts   func(body []byte, single bool) ([]string, error)
}

// wire is a leaf.Issuer over HTTP.
type wire struct {
	dialect

	base   string
	client *http.Client
	header http.Header
	mode   string
}

func (w wire) Next(ctx context.Context, tag string) (int64, error) {
	ranges, err := w.ask(ctx, tag, "")
	if err != nil {
		return 0, err
	}
	if len(ranges) != 1 || ranges[0].Len() != 1 {
		return 0, fmt.Errorf("%v instead of one ID", ranges)
	}
	return ranges[0].Lo, nil
}

func (w wire) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	return w.ask(ctx, tag, strconv.Itoa(n))
}

func (w wire) ask(ctx context.Context, tag, count string) ([]leaf.Range, error) {
	body, err := w.fetch(ctx, tag, count, "")
	if err != nil {
		return nil, err
	}
	return w.read(body, count == "")
}

// fetch returns the body of a reply that is no error.
func (w wire) fetch(ctx context.Context, tag, count, name string) ([]byte, error) {
	method, target, body := w.request(w.base, w.mode, tag, count, name)
	r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	}
	r.Header = w.header.Clone()
	if w.accept != "" {
		r.Header.Set("Accept", w.accept)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, problem.Read(resp)
	}
	return io.ReadAll(resp.Body)
}

func getID(base, mode, tag, count, name string) (method, target, body string) {
	target = base + "/api/" + mode + "/get/" + url.PathEscape(tag)
	query := url.Values{}
	if count != "" {
		query.Set("count", count)
	}
	if name != "" {
		query.Set("format", name)
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return http.MethodGet, target, ""
}

var getText = dialect{getID, "", idsOf(linesOf), linesOf}

// linesOf returns the lines of a batch, or one ID without a line end.
func linesOf(body []byte, single bool) (lines []string, err error) {
	text := string(body)
	if single != !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("%q: want a line end exactly if it is a batch", text)
	}
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines, nil
}

var getJSON = dialect{getID, "application/json", func(body []byte, single bool) (ranges []leaf.Range, err error) {
	if single {
		return appendID(nil, string(body))
	}
	return idsOf(stringsOf)(body, false)
}, func(body []byte, single bool) ([]string, error) {
	if single && body[0] != '"' { // a number, which has no format
		return []string{string(body)}, nil
	}
	return stringsOf(body, single)
}}

// stringsOf returns the strings of a batch, or one string.
func stringsOf(body []byte, single bool) (texts []string, err error) {
	if single {
		var text string
		err = json.Unmarshal(body, &text)
		return []string{text}, err
	}
	var reply struct {
		IDs []string `json:"ids"`
	}
	err = json.Unmarshal(body, &reply)
	return reply.IDs, err
}

// idsOf reads texts as numbers.
func idsOf(texts func(body []byte, single bool) ([]string, error)) func([]byte, bool) ([]leaf.Range, error) {
	return func(body []byte, single bool) (ranges []leaf.Range, err error) {
		all, err := texts(body, single)
		for _, text := range all {
			if err == nil {
				ranges, err = appendID(ranges, text)
			}
		}
		return ranges, err
	}
}

func appendID(ranges []leaf.Range, text string) ([]leaf.Range, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	return leaf.AppendRange(ranges, leaf.Range{Lo: id, Hi: id + 1}), err
}

var postNext = dialect{
	request: func(base, mode, tag, count, name string) (method, target, body string) {
		quoted := []byte(`"` + tag + `"`)
		if utf8.ValidString(tag) { // else it is sent as it is: the server is to refuse it
			quoted, _ = json.Marshal(tag)
		}
		if count != "" {
			count = `,"count":` + count
		}
		if name != "" {
			name = `,"format":"` + name + `"`
		}
		return http.MethodPost, base + "/v1/next", `{"requests":[{"mode":"` + mode + `","tag":` + string(quoted) + count + name + `}]}`
	},
	read: func(body []byte, _ bool) ([]leaf.Range, error) {
		result, err := readResult(body)
		return result.Ranges, err
	},
	texts: func(body []byte, _ bool) (texts []string, err error) {
		result, err := readResult(body)
		for id := range leaf.IDs(result.Ranges) { // of the format "number"
			texts = append(texts, strconv.FormatInt(id, 10))
		}
		return append(texts, result.IDs...), err
	},
}

// result is the answer to one entry.
type result struct {
	Ranges []leaf.Range
	IDs    []string
	Error  *problem.Error
}

// readResult returns the only one of a reply.
func readResult(body []byte) (result, error) {
	var reply struct{ Results []result }
	if err := json.Unmarshal(body, &reply); err != nil {
		return result{}, err
	}
	if len(reply.Results) != 1 {
		return result{}, fmt.Errorf("%d results: %s", len(reply.Results), body)
	}
	if e := reply.Results[0].Error; e != nil {
		return result{}, e
	}
	return reply.Results[0], nil
}
