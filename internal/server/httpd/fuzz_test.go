package httpd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// FuzzDecodeQuery: /decodeSnowflakeId takes one decimal number and nothing else, and
// both kinds of answer are JSON.
func FuzzDecodeQuery(f *testing.F) {
	for _, query := range []string{
		"snowflakeId=7", "snowflakeId=9223372036854775807", "snowflakeId=9223372036854775808", "snowflakeId=-1", "snowflakeId=+7", "snowflakeId=07",
		"snowflakeId=1&snowflakeId=2", "snowflakeid=1", "snowflakeId=%zz", "snowflakeId=1;x=2", "snowflakeId=1_0", "snowflakeId=٧", "",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		var asked []int64
		cfg := quiet(httpd.Config{Times: servertest.Times(func(id int64) (idtime.Decoded, error) {
			asked = append(asked, id)
			return idtime.Decoded{Sequence: id}, nil
		})})
		w := httptest.NewRecorder()
		httpd.Handler(cfg).ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/decodeSnowflakeId", RawQuery: query}})
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%q: %d %s: %v", query, w.Code, w.Body, err)
		}
		values, _ := url.ParseQuery(query) // what can be read of it counts, as in net/http
		switch given := values["snowflakeId"]; {
		case w.Code == http.StatusOK && (len(asked) != 1 || len(given) != 1 || body["sequenceId"] != strconv.FormatInt(asked[0], 10)):
			t.Errorf("%q: asked for %d, answered %s", query, asked, w.Body)
		case w.Code == http.StatusOK:
			if n, err := strconv.ParseInt(given[0], 10, 64); err != nil || n != asked[0] {
				t.Errorf("%q is read as %d", given[0], asked[0])
			}
		case w.Code != http.StatusBadRequest || body["code"] != "bad_request":
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	})
}
