package httpd_test

import (
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
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

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
