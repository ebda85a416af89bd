package app_test

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestLayoutsOverTheWire: the key of a request chooses a layout, and HTTP and gRPC take its IDs apart.
func TestLayoutsOverTheWire(t *testing.T) {
	t.Parallel()
	const wide = "js53,worker=10,sequence=5"
	c := embedded(shortDir(t))
	c.Snowflake.Layouts, c.GRPC.Addr = []string{wide}, "127.0.0.1:0"
	a, _ := start(t, c)
	status, body := get(t, a, "/api/snowflake/get/"+wide)
	id, err := strconv.ParseInt(body, 10, 64)
	if status != 200 || err != nil || id >= 1<<53 {
		t.Fatalf("%s: %d %s", wide, status, body)
	}
	if status, body := get(t, a, "/api/snowflake/get/order"); status != 200 || len(body) < 17 {
		t.Errorf("the layout of all other keys: %d %s", status, body)
	}
	if status, body := get(t, a, "/api/snowflake/get/js53"); status != 400 || !strings.Contains(body, wide) {
		t.Errorf("a layout that is not served: %d %s", status, body)
	}
	var d idtime.Decoded
	if status, body := get(t, a, "/v1/snowflake/decode?id="+body+"&layout="+url.QueryEscape(wide)); status != 200 || json.Unmarshal([]byte(body), &d) != nil || d.Layout != wide || d.Warning != "" {
		t.Errorf("decode: %d %s", status, body)
	}
	var r idtime.Range
	if status, body := get(t, a, "/v1/snowflake/range?from="+strconv.FormatInt(d.UnixMilli, 10)+"&layout="+url.QueryEscape(wide)); status != 200 || json.Unmarshal([]byte(body), &r) != nil || r.Lo > id || r.Hi <= id {
		t.Errorf("range: %d %s", status, body)
	}
	if status, body := get(t, a, "/v1/snowflake/decode?id=1&layout=lief"); status != 400 {
		t.Errorf("no layout: %d %s", status, body)
	}
	conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	wire := leafpb.NewLeafServiceClient(conn)
	decoded, err := wire.Decode(t.Context(), &leafpb.DecodeRequest{Id: id, Layout: wide})
	if err != nil || decoded.GetUnixMs() != d.UnixMilli || decoded.GetLayout() != wide {
		t.Errorf("gRPC: %v, %v", decoded, err)
	}
	ids, err := wire.TimeRange(t.Context(), &leafpb.TimeRangeRequest{FromUnixMs: d.UnixMilli, Layout: wide})
	if err != nil || ids.GetRange().GetLo() != r.Lo || ids.GetRange().GetHi() != r.Hi {
		t.Errorf("gRPC: %v, %v", ids, err)
	}
}
