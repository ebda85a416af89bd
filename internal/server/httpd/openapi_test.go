package httpd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
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

// newKeys returns keys of zeros.
func newKeys() *format.Keys {
	k := &format.Keys{}
	ring := &opaque.Ring{Bits: 63, VersionBits: 2, Keys: map[int][]byte{0: make([]byte, opaque.SecretSize)}}
	if err := k.Replace(ring); err != nil {
		panic(err)
	}
	return k
}

// servers are the states of a server that a request can meet.
var servers = map[string]func() httpd.Config{
	"serving": func() httpd.Config {
		return httpd.Config{
			Access:  leaf.Anyone(documented{newIssuer()}, documented{newIssuer()}),
			Formats: newKeys(),
			Cache: func(context.Context, httpd.PageRequest) (httpd.Page, error) {
				return httpd.Page{Rows: []any{map[string]any{"tag": "order", "value": "5"}}}, nil
			},
			DB: func(context.Context, httpd.PageRequest) (httpd.Page, error) {
				return httpd.Page{Rows: []any{map[string]any{"biz_tag": "order", "step": 1000}}}, nil
			},
			Decode: func(int64) (httpd.Decoded, error) {
				return httpd.Decoded{UnixMilli: 1795132800000, Worker: 7, Sequence: 5}, nil
			},
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
		all = append(all, &sample{server: server, method: method, path: path, target: target, fields: fields, body: body})
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
		for _, query := range []string{"number", "opaque", "opaque-base62", "opaque-crockford", "number&count=2", "opaque&count=2", "opaque-base62&count=2", "hex", ""} {
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
	for _, path := range []string{"/v1/next", "/cache", "/db", "/decodeSnowflakeId"} {
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
		add("crowded", rt.Path, strings.NewReplacer("{tag}", "order", "{key}", "order").Replace(rt.Path))
	}
	for _, body := range []string{
		`{"requests":[{"tag":"a"},{"tag":"b","count":0}]}`, `{"requests":[]}`, `{"requests":[{}]}`, `{"requests":[{"mode":"snowflake","tag":"k"}]}`,
		`{"requests":[{"mode":"segment","tag":"a","count":100000}]}`, `{"requests":[{"mode":"random","tag":"a"}]}`, `{"requests":[{"tag":5}]}`,
		`{"requests":[{"tag":"` + strings.Repeat("é", 128) + `"}]}`, `{"requests":[{"tag":"` + strings.Repeat("é", 129) + `"}]}`,
		`{"requests":[{"tag":"a","format":"opaque"},{"mode":"snowflake","format":"opaque-crockford","count":2},{"tag":"nosuch","format":"opaque"},{"tag":"a","format":"number"}]}`,
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

// varies are the parts of bodies that are never the same.
var varies = map[string]*regexp.Regexp{
	"/v1/clock":          regexp.MustCompile(`[0-9]{13}`),
	"/decodeSnowflakeId": regexp.MustCompile(`\(20[-0-9:. ]+\)`), // the time zone
}

// comparable returns a body in the form in which an example equals it.
func comparable(t *testing.T, path, media string, value any) any {
	t.Helper()
	text, ok := value.(string)
	if !ok || strings.HasSuffix(media, "json") && varies[path] == nil {
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	if v := varies[path]; v != nil {
		text = v.ReplaceAllString(text, "*")
	}
	if !strings.HasSuffix(media, "json") {
		return text
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil && varies[path] == nil {
		t.Fatalf("%s: %q: %v", path, text, err)
	} else if err != nil {
		return text
	}
	return value
}

// TestOpenAPI holds the document and the handlers to each other: the same routes and
// methods; of each route the same statuses; replies that fit the schemas, with codes that
// are shown; and examples that are real replies, word by word.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	paths := doc["paths"].(map[string]any)
	compareRoutes(t, paths)

	all := samples()
	examples := paths["/v1/next"].(map[string]any)["post"].(map[string]any)["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["examples"].(map[string]any)
	for _, e := range examples {
		body, err := json.Marshal(e.(map[string]any)["value"])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &sample{server: "serving", method: http.MethodPost, path: "/v1/next", target: "/v1/next", body: string(body)})
	}
	given := map[string]bool{}  // "GET /cache 200" that a reply had
	shown := map[string][]any{} // the bodies of replies, by the place that documents them
	for _, s := range all {
		s.send(t)
		checkReply(t, doc, s, given, shown)
	}
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			for status := range op.(map[string]any)["responses"].(map[string]any) {
				if at := strings.ToUpper(method) + " " + path + " " + status; status != "default" && !given[at] {
					t.Errorf("%s is documented, and no reply of this test has it", at)
				}
			}
		}
	}
	checkExamples(t, doc, shown)
}

func compareRoutes(t *testing.T, paths map[string]any) {
	t.Helper()
	var served, documented []string
	for _, rt := range httpd.Routes(servers["serving"]()) {
		for _, m := range rt.Methods {
			served = append(served, m+" "+rt.Path)
			op, _ := paths[rt.Path].(map[string]any)[strings.ToLower(m)].(map[string]any)
			if _, open := op["security"]; open != rt.Public {
				t.Errorf("%s %s: documented as for everybody: %v, is: %v", m, rt.Path, open, rt.Public)
			}
		}
	}
	for path, item := range paths {
		for method := range item.(map[string]any) {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Fatalf("routes (-served +documented):\n%s", diff)
	}
}

// responseOf returns what documents the reply of s, and where that stands.
func responseOf(doc document, s *sample) (response map[string]any, place string) {
	if s.path == "" || s.reply.status == http.StatusMethodNotAllowed {
		name := map[int]string{404: "NoSuchRoute", 405: "MethodNotAllowed"}[s.reply.status]
		return doc.resolve(map[string]any{"$ref": "#/components/responses/" + name})
	}
	op := doc["paths"].(map[string]any)[s.path].(map[string]any)[strings.ToLower(s.method)].(map[string]any)
	status := fmt.Sprint(s.reply.status)
	response, place = doc.resolve(op["responses"].(map[string]any)[status])
	if place == "" {
		place = s.method + " " + s.path + " " + status
	}
	return response, place
}

func checkReply(t *testing.T, doc document, s *sample, given map[string]bool, shown map[string][]any) {
	t.Helper()
	response, place := responseOf(doc, s)
	if response == nil {
		t.Errorf("%v: the status is not documented", s)
		return
	}
	given[fmt.Sprintf("%s %s %d", s.method, s.path, s.reply.status)] = true
	for name, h := range object(response["headers"]) {
		value := any(s.reply.header.Get(name))
		if schema := object(h)["schema"]; object(schema)["type"] == "integer" {
			var n float64
			_, err := fmt.Sscan(fmt.Sprint(value), &n)
			if value = n; err != nil && strings.Contains(s.reply.body, `"retryable":true`) {
				t.Errorf("%v: field %s: %v", s, name, err)
			} else if err != nil {
				continue // the error is none that a retry can cure
			}
		}
		for _, fault := range doc.faults(object(h)["schema"], value, name) {
			t.Errorf("%v: %s", s, fault)
		}
	}
	media, _, err := mime.ParseMediaType(s.reply.header.Get("Content-Type"))
	content := object(object(response["content"])[media])
	if err != nil || content == nil {
		t.Errorf("%v: the type %q is not documented", s, media)
		return
	}
	body := any(s.reply.body)
	if strings.HasSuffix(media, "json") {
		if err := json.Unmarshal([]byte(s.reply.body), &body); err != nil {
			t.Fatalf("%v: %v", s, err)
		}
	}
	for _, fault := range doc.faults(content["schema"], body, "body") {
		t.Errorf("%v: %s", s, fault)
	}
	if code, ok := object(body)["code"].(string); ok && object(content["examples"])[code] == nil {
		t.Errorf("%v: the code %q is not shown at %s", s, code, place)
	}
	shown[place+" "+media] = append(shown[place+" "+media], comparable(t, s.path, media, body))

	checkParameters(t, doc, s)

	// What the server accepts fits the schema of the request, and the reverse.
	if s.path == "/v1/next" && s.method == http.MethodPost && s.fields == nil && s.server == "serving" {
		var request any
		if err := json.Unmarshal([]byte(s.body), &request); err != nil {
			t.Fatal(err)
		}
		faults := doc.faults(map[string]any{"$ref": "#/components/schemas/NextRequest"}, request, "request")
		if (len(faults) == 0) != (s.reply.status == http.StatusOK) {
			t.Errorf("%v: the schema says %v", s, faults)
		}
	}
}

// checkParameters: what the server accepts in a query is in the document and fits its
// schema, and the reverse.
func checkParameters(t *testing.T, doc document, s *sample) {
	t.Helper()
	refused := s.reply.status == http.StatusBadRequest
	if s.server != "serving" || s.fields != nil || s.path == "" || !refused && s.reply.status != http.StatusOK {
		return
	}
	target, err := url.Parse(s.target)
	if err != nil {
		t.Fatal(err)
	}
	query := target.Query()
	var faults []string
	op := object(object(object(doc["paths"])[s.path])[strings.ToLower(s.method)])
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		parameter, _ := doc.resolve(p)
		name := fmt.Sprint(parameter["name"])
		if parameter["in"] != "query" {
			continue
		}
		if values := query[name]; len(values) == 1 {
			value := any(values[0])
			if schema, _ := doc.resolve(parameter["schema"]); schema["type"] == "integer" {
				if n, err := strconv.ParseFloat(values[0], 64); err == nil {
					value = n
				}
			}
			faults = append(faults, doc.faults(parameter["schema"], value, name)...)
		} else if parameter["required"] == true {
			faults = append(faults, name+" is required")
		}
		query.Del(name)
	}
	if !strings.Contains(s.path, "{") { // an ID route ignores what it does not know
		for name := range query {
			faults = append(faults, name+" is not documented")
		}
	}
	if s.path != "/v1/next" && (len(faults) > 0) != refused {
		t.Errorf("%v: the document says %v of the query", s, faults)
	}
}

// checkExamples expects every example of a reply to be one that came.
func checkExamples(t *testing.T, doc document, shown map[string][]any) {
	t.Helper()
	seen := 0
	check := func(place, path string, response map[string]any) {
		for media, content := range object(response["content"]) {
			for name, e := range object(object(content)["examples"]) {
				seen++
				want := comparable(t, path, media, object(e)["value"])
				if !slices.ContainsFunc(shown[place+" "+media], func(got any) bool { return reflect.DeepEqual(got, want) }) {
					t.Errorf("%s: the example %q is no reply: %v; there were %v", place, name, want, shown[place+" "+media])
				}
			}
		}
	}
	for path, item := range object(doc["paths"]) {
		for method, op := range object(item) {
			for status, r := range object(object(op)["responses"]) {
				if response, ref := doc.resolve(r); ref == "" {
					check(strings.ToUpper(method)+" "+path+" "+status, path, response)
				}
			}
		}
	}
	responses := object(object(doc["components"])["responses"])
	for _, name := range slices.Sorted(maps.Keys(responses)) {
		check("#/components/responses/"+name, "", object(responses[name]))
	}
	if seen < 30 {
		t.Errorf("%d examples were found: the test does not see the document", seen)
	}
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// TestOpenAPICodes: the codes of the document are those of the table, without those that
// only a management command meets, and with those that only HTTP knows.
func TestOpenAPICodes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct{ Code struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	want := []string{"not_found", "method_not_allowed", "too_many_connections"}
	for _, c := range leaf.Classes() {
		if !errors.Is(c.Err, leaf.ErrConflict) || c.Err == nil {
			want = append(want, c.Code)
		}
	}
	got := doc.Components.Schemas.Problem.Properties.Code.Enum
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-table +document):\n%s", diff)
	}
}

// TestOpenAPIIsServed: what is served is the file that is checked.
func TestOpenAPIIsServed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	dial(t, start(t, quiet(httpd.Config{}))).ask("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", string(data))
}
