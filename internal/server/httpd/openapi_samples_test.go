package httpd_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/opaque"
)

// errorOf is what the issuers of this test answer to some tags: the texts of real ones.
var errorOf = map[string]error{
	"nosuch":  fmt.Errorf("%w: %q", leaf.ErrUnknownTag, "nosuch"),
	"blocked": fmt.Errorf("%w: tag %q", leaf.ErrBlocked, "blocked"),
	"latched": fmt.Errorf("%w: tag %q; an operator must run leaf tag repair", leaf.ErrRegress, "latched"),
	"badrow":  fmt.Errorf("%w: tag %q has step=0, must be 1 to 1073741824", leaf.ErrInvalidRow, "badrow"),
	"full":    fmt.Errorf("%w: tag %q has max_id=9223372036854775000", leaf.ErrOverflow, "full"),
	"empty":   fmt.Errorf("%w: tag %q", leaf.ErrExhausted, "empty"),
	"clock":   fmt.Errorf("%w: the clock is 3s behind what was issued", leaf.ErrClock),
	"cold":    fmt.Errorf("%w: no answer from the database yet", leaf.ErrNotReady),
	"broken":  errors.New("a fault"),
}

// documented is an issuer for the requests of the document.
type documented struct{ *issuer }

func (d documented) Next(ctx context.Context, tag string) (int64, error) {
	if err := errorOf[tag]; err != nil {
		return 0, err
	}
	return d.issuer.Next(ctx, tag)
}

func (d documented) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if err := errorOf[tag]; err != nil {
		return nil, err
	}
	return d.issuer.NextN(ctx, tag, n)
}

// NextEach is for sequences; their entities have no number yet.
func (d documented) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	q := requests[0]
	lo := max(q.From, 1)
	_, err := d.Next(ctx, sequence) // its errors
	return []leaf.SequenceResult{{Range: leaf.Range{Lo: lo, Hi: lo + int64(q.Count)}, Err: err}}, nil
}

// documentedAccess gives documented for everything.
type documentedAccess struct{}

func (documentedAccess) Open(leaf.Credentials) (*leaf.Issuers, error) {
	d := documented{newIssuer()}
	return &leaf.Issuers{Segment: d, Snowflake: documented{newIssuer()}, Sequence: d}, nil
}

func (documentedAccess) Guarded() bool { return false }

// newKeys returns keys of zeros.
func newKeys() *format.Formats {
	t, err := number.ParseTemplate("INV-{seq:08}")
	if err != nil {
		panic(err)
	}
	k := &format.Formats{Templates: func(string) (*number.Template, bool, error) { return t, true, nil }}
	ring := &opaque.Ring{Bits: 63, VersionBits: 2, Keys: map[int][]byte{0: make([]byte, opaque.SecretSize)}}
	if err := k.Replace(ring, nil); err != nil {
		panic(err)
	}
	return k
}

// servers are the states of a server that a request can meet.
var servers = map[string]func() httpd.Config{
	"serving": func() httpd.Config {
		return httpd.Config{
			Access:  documentedAccess{},
			Formats: newKeys(),
			Cache: func(context.Context, httpd.PageRequest) (httpd.Page, error) {
				return httpd.Page{Rows: []any{map[string]any{"tag": "order", "value": "5"}}}, nil
			},
			DB: func(context.Context, httpd.PageRequest) (httpd.Page, error) {
				return httpd.Page{Rows: []any{map[string]any{"biz_tag": "order", "step": 1000}}}, nil
			},
			Times: servertest.Times(func(id int64) (idtime.Decoded, error) {
				return idtime.Decoded{ID: id, Time: time.UnixMilli(1795132800000).UTC(), UnixMilli: 1795132800000, Worker: 7, Sequence: 5, Layout: "leaf"}, nil
			}),
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "leaf_build_info 1") }),
		}
	},
	"guarded": func() httpd.Config {
		k := newKeeper()
		k.refuse = wants("s3cret")
		return httpd.Config{Access: k}
	},
	"off": func() httpd.Config { return httpd.Config{} },
	"waiting": func() httpd.Config {
		wait := func(context.Context, httpd.PageRequest) (httpd.Page, error) { return httpd.Page{}, errorOf["cold"] }
		return httpd.Config{Cache: wait, DB: wait, Ready: func() leaf.Readiness {
			return leaf.Readiness{Segment: leaf.ModeReadiness{Enabled: true, Reasons: []string{"database a: no answer yet"}}}
		}}
	},
	"broken": func() httpd.Config {
		k := newKeeper()
		k.refuse = func(leaf.Credentials) error { panic("a fault") }
		return httpd.Config{
			Access:  k,
			Ready:   func() leaf.Readiness { panic("a fault") },
			Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") }),
		}
	},
	"crowded": func() httpd.Config { return httpd.Config{MaxConns: 1} },
}

// sample is a request and what came back.
type sample struct {
	server, method, target string
	fields                 []string
	body                   string

	path  string // of the route, as in the document
	reply reply
}

func (s *sample) String() string {
	return fmt.Sprintf("%s server: %s %s %q %s: %d %s", s.server, s.method, s.target, s.fields, s.body, s.reply.status, s.reply.body)
}

// samples are the requests that the document does not say word by word.
func samples() (all []*sample) {
	add := func(server, path, target string, fields ...string) {
		method := http.MethodGet
		body := ""
		if path == "/v1/next" {
			method, body = http.MethodPost, `{"requests":[{"tag":"order"}]}`
		}
		if strings.HasPrefix(path, "/v1/sequence/skip/") {
			method = http.MethodPost
		}
		all = append(all, &sample{server: server, method: method, path: path, target: target, fields: fields, body: body})
	}
	for verb, queries := range map[string][]string{"next": {"", "?count=3", "?count=0"}, "peek": {""}, "skip": {"?to=500", "?to=-1", "?to=x", ""}} {
		path := "/v1/sequence/" + verb + "/{sequence}/{entity}"
		for _, query := range queries {
			add("serving", path, "/v1/sequence/"+verb+"/order/7"+query)
			add("serving", path, "/v1/sequence/"+verb+"/order/7"+query, "Accept: application/json")
		}
		for name := range errorOf {
			add("serving", path, "/v1/sequence/"+verb+"/"+name+"/7"+queries[0])
		}
		add("serving", path, "/v1/sequence/"+verb+"/slow/7"+queries[0])
		add("serving", path, "/v1/sequence/"+verb+"/order/7"+queries[0], "Authorization: Bearer a", "Authorization: Bearer b")
		for _, server := range []string{"guarded", "off", "broken"} {
			add(server, path, "/v1/sequence/"+verb+"/order/7"+queries[0])
		}
	}
	for mode, path := range map[string]string{"segment": "/api/segment/get/{tag}", "snowflake": "/api/snowflake/get/{key}"} {
		get := "/api/" + mode + "/get/"
		add("serving", path, get+"order")
		add("serving", path, get+"order", "Accept: application/json")
		add("serving", path, get+"order?count=3")
		add("serving", path, get+"order?count=3", "Accept: application/json")
		add("serving", path, get+"order?count=0")
		add("serving", path, get+"order?count=100001")
		add("serving", path, get+"order?count=x")
		for _, query := range []string{"number", "text", "text&count=2", "opaque", "opaque-base62", "opaque-crockford", "number&count=2", "opaque&count=2", "opaque-base62&count=2", "hex", ""} {
			add("serving", path, get+"order?format="+query)
			add("serving", path, get+"order?format="+query, "Accept: application/json")
		}
		add("serving", path, get+"slow")
		add("guarded", path, get+"order")
		add("off", path, get+"order")
		for tag := range errorOf {
			if mode == "segment" || tag != "nosuch" {
				add("serving", path, get+tag)
			}
		}
	}
	for _, path := range []string{"/v1/next", "/cache", "/db", "/decodeSnowflakeId", "/v1/snowflake/decode", "/v1/snowflake/range"} {
		add("guarded", path, path)
		add("broken", path, path)
		add("serving", path, path, "Authorization: Bearer a", "Authorization: Bearer b")
	}
	for _, path := range []string{"/cache", "/db", "/readyz"} {
		add("waiting", path, path)
	}
	for _, path := range []string{"/cache", "/db"} {
		add("off", path, path)
		for _, query := range []string{"?limit=1", "?limit=10000&after=order", "?limit=0", "?limit=10001", "?limit=x"} {
			add("serving", path, path+query)
		}
	}
	add("off", "/decodeSnowflakeId", "/decodeSnowflakeId?snowflakeId=42")
	add("serving", "/decodeSnowflakeId", "/decodeSnowflakeId?snowflakeId=42")
	for _, id := range []string{"?snowflakeId=abc", "?snowflakeId=-1", "?snowflakeId=", ""} {
		add("serving", "/decodeSnowflakeId", "/decodeSnowflakeId"+id)
	}
	for path, queries := range map[string][]string{
		"/v1/snowflake/decode": {"?id=42", "?id=abc", "?id=-1", "?id=", ""},
		"/v1/snowflake/range": {
			"?from=1795132800000", "?from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00%2B01:00", "?from=2026-11-20", "?from=", "", "?to=1795132800000",
			"?from=1795132800000&to=", "?from=1795132800000&to=1.5",
		},
	} {
		add("off", path, path+queries[0])
		for _, query := range queries {
			add("serving", path, path+query)
		}
	}
	for _, path := range []string{"/cache", "/db", "/healthz", "/readyz", "/v1/clock", "/metrics", "/openapi.json"} {
		add("serving", path, path)
	}
	for _, mode := range []string{"segment", "snowflake", "other", ""} {
		add("serving", "/readyz", "/readyz?mode="+mode)
	}
	for _, path := range []string{"/readyz", "/metrics"} {
		add("broken", path, path)
	}
	for _, rt := range httpd.Routes(servers["serving"]()) {
		add("crowded", rt.Path, strings.NewReplacer("{tag}", "order", "{key}", "order", "{sequence}", "order", "{entity}", "7").Replace(rt.Path))
	}
	for _, body := range []string{
		`{"requests":[{"tag":"a"},{"tag":"b","count":0}]}`, `{"requests":[]}`, `{"requests":[{}]}`, `{"requests":[{"mode":"snowflake","tag":"k"}]}`,
		`{"requests":[{"mode":"segment","tag":"a","count":100000}]}`, `{"requests":[{"mode":"random","tag":"a"}]}`, `{"requests":[{"tag":5}]}`,
		`{"requests":[{"tag":"` + strings.Repeat("é", 128) + `"}]}`, `{"requests":[{"tag":"` + strings.Repeat("é", 129) + `"}]}`,
		`{"requests":[{"tag":"a","format":"text","count":2},{"tag":"a","format":"opaque"},{"mode":"snowflake","format":"opaque-crockford","count":2},{"tag":"nosuch","format":"opaque"},{"tag":"a","format":"number"}]}`,
		`{"requests":[{"tag":"a","format":"hex"}]}`, `{"requests":[{"tag":"a","format":""}]}`, `{"requests":[{"tag":"a","format":5}]}`,
		`{"requests":[{"tag":"a","cuont":1}]}`, `{"request":[{"tag":"a"}]}`, `[]`, `{"requests":[{"tag":"a","count":"1"}]}`, `{"requests":[{"tag":"slow"},{"tag":"broken"}]}`,
	} {
		all = append(all, &sample{server: "serving", method: http.MethodPost, path: "/v1/next", target: "/v1/next", body: body})
	}
	return append(all,
		&sample{server: "serving", method: http.MethodGet, target: "/nowhere"},
		&sample{server: "serving", method: http.MethodPut, target: "/v1/next"})
}

// send fills in the reply.
func (s *sample) send(t *testing.T) {
	t.Helper()
	server := start(t, quiet(servers[s.server]()))
	if s.server == "crowded" {
		dial(t, server).ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "ok\n")
	}
	c := dial(t, server)
	fields := append([]string{"Host: localhost", fmt.Sprintf("Content-Length: %d", len(s.body))}, s.fields...)
	c.send(s.method + " " + s.target + " HTTP/1.1\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n" + s.body)
	s.reply = c.reply()
}
