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
				return overHTTP(tb, a, c, tt.dialect, tt.secure, tt.header)
			}
			servertest.Options{NoCancel: tt.noCancel, StartAs: startAs}.Run(t, func(tb testing.TB, a leaf.Access) leaf.Issuers {
				return startAs(tb, a, leaf.Credentials{})
			})
		})
	}
}

// overHTTP starts a server and returns a client of it.
func overHTTP(t testing.TB, a leaf.Access, c leaf.Credentials, d dialect, secure bool, header http.Header) leaf.Issuers {
	t.Helper()
	cfg := quiet(httpd.Config{Access: a})
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

// dialect is a way to ask for IDs. An empty count is none.
type dialect struct {
	request func(base, mode, tag, count string) (method, target, body string)
	accept  string
	read    func(body []byte, single bool) ([]leaf.Range, error)
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
	method, target, body := w.request(w.base, w.mode, tag, count)
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
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return w.read(text, count == "")
}

func getID(base, mode, tag, count string) (method, target, body string) {
	target = base + "/api/" + mode + "/get/" + url.PathEscape(tag)
	if count != "" {
		target += "?count=" + count
	}
	return http.MethodGet, target, ""
}

var getText = dialect{getID, "", func(body []byte, single bool) (ranges []leaf.Range, err error) {
	lines := string(body)
	if single {
		lines += "\n"
	}
	for line := range strings.Lines(lines) {
		if ranges, err = appendID(ranges, strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
	return ranges, nil
}}

var getJSON = dialect{getID, "application/json", func(body []byte, single bool) (ranges []leaf.Range, err error) {
	if single {
		return appendID(nil, string(body))
	}
	var reply struct {
		IDs []string `json:"ids"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, err
	}
	for _, id := range reply.IDs {
		if ranges, err = appendID(ranges, id); err != nil {
			return nil, err
		}
	}
	return ranges, nil
}}

func appendID(ranges []leaf.Range, text string) ([]leaf.Range, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	return leaf.AppendRange(ranges, leaf.Range{Lo: id, Hi: id + 1}), err
}

var postNext = dialect{
	request: func(base, mode, tag, count string) (method, target, body string) {
		quoted := []byte(`"` + tag + `"`)
		if utf8.ValidString(tag) { // else it is sent as it is: the server is to refuse it
			quoted, _ = json.Marshal(tag)
		}
		if count != "" {
			count = `,"count":` + count
		}
		return http.MethodPost, base + "/v1/next", `{"requests":[{"mode":"` + mode + `","tag":` + string(quoted) + count + `}]}`
	},
	read: func(body []byte, _ bool) ([]leaf.Range, error) {
		var reply struct {
			Results []struct {
				Ranges []leaf.Range
				Error  *problem.Error
			}
		}
		if err := json.Unmarshal(body, &reply); err != nil {
			return nil, err
		}
		if len(reply.Results) != 1 {
			return nil, fmt.Errorf("%d results: %s", len(reply.Results), body)
		}
		if e := reply.Results[0].Error; e != nil {
			return nil, e
		}
		return reply.Results[0].Ranges, nil
	},
}
