package app_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/snowflake"
)

// TestIDsOfATime: an ID lies in the range of a time if and only if its unit overlaps the time,
// and the unit that Decode names has the ID.
func TestIDsOfATime(t *testing.T) {
	t.Parallel()
	names := append(snowflake.Presets(), "time=40,worker=3,sequence=5,epoch=0", "js53,unit=1s,epoch=1700000000000")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "layout")
		l, err := snowflake.ParseLayout(name)
		if err != nil {
			t.Fatal(err)
		}
		last := l.End().UnixMilli() - 1
		id := rapid.Int64Range(0, l.IDs(l.End().Add(-1), l.End()).Hi-1).Draw(t, "id")
		d, err := app.Decode(name, id, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := app.IDsOf(name, d.Time, time.Time{}); err != nil || id < r.Lo || id >= r.Hi {
			t.Fatalf("%d has the time %v, whose IDs are %+v, %v", id, d.Time, r, err)
		}
		from := time.UnixMilli(rapid.Int64Range(l.Epoch, last).Draw(t, "from"))
		to := time.UnixMilli(rapid.Int64Range(from.UnixMilli()+1, last+1).Draw(t, "to"))
		r, err := app.IDsOf(name, from, to)
		overlaps := d.Time.Before(to) && d.Time.Add(l.Unit).After(from)
		if in := id >= r.Lo && id < r.Hi; err != nil || in != overlaps {
			t.Fatalf("%d of %v lies in the IDs %+v of [%v, %v): %v, want %v; %v", id, d.Time, r, from, to, in, overlaps, err)
		}
	})
}

func TestTimesOutsideTheLayout(t *testing.T) {
	t.Parallel()
	l := snowflake.Leaf()
	begin, end := time.UnixMilli(l.Epoch), l.End()
	limits := "must lie in 2010-11-04T01:42:54.657Z to 2080-07-10T17:30:30.208Z, the time of the layout"
	for _, tt := range []struct {
		name     string
		from, to time.Time
		want     string
	}{
		{"all of it", begin, end, ""},
		{"its last moment", end.Add(-1), time.Time{}, ""},
		{"before the epoch", begin.Add(-1), end, "from="},
		{"seconds for milliseconds", time.UnixMilli(1_700_000_000), end, `from="1970-01-20T16:13:20Z": ` + limits},
		{"from the end on", end, time.Time{}, "from="},
		{"past the end", begin, end.Add(1), `to="2080-07-10T17:30:30.208000001Z": ` + limits},
		{"nothing", begin, begin, "to="},
		{"backwards", end.Add(-1), begin, "must be after from=2080-07-10T17:30:30.207999999Z"},
	} {
		r, err := app.IDsOf("leaf", tt.from.UTC(), tt.to.UTC())
		if tt.want == "" && (err != nil || r.Hi <= r.Lo) || tt.want != "" && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %+v, %v", tt.name, r, err)
		}
	}
	if r, err := app.IDsOf("lief", begin, end); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("no layout: %+v, %v", r, err)
	}
}

// TestTimesOverTheWire: HTTP and gRPC say the same of an ID and of a time, by the node's layout.
func TestTimesOverTheWire(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Snowflake.Layout, c.GRPC.Addr = "dc,epoch=1700000000000", "127.0.0.1:0"
	c.Snowflake.Enable = false // no worker ID is needed
	a, _ := start(t, c)
	var d idtime.Decoded
	if status, body := get(t, a, "/v1/snowflake/decode?id=4194304"); status != 200 || json.Unmarshal([]byte(body), &d) != nil || d.UnixMilli != 1700000000001 {
		t.Errorf("decode: %d %s", status, body)
	}
	var r idtime.Range
	if status, body := get(t, a, "/v1/snowflake/range?from=2023-11-14T22:13:20.001Z&to=1700000000003"); status != 200 || json.Unmarshal([]byte(body), &r) != nil || r.Lo != 1<<22 || r.Hi != 3<<22 {
		t.Errorf("range: %d %s", status, body)
	}
	conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	wire := leafpb.NewLeafServiceClient(conn)
	decoded, err := wire.Decode(t.Context(), &leafpb.DecodeRequest{Id: 4194304})
	if err != nil || decoded.GetUnixMs() != d.UnixMilli || decoded.Datacenter == nil || decoded.GetLayout() != d.Layout {
		t.Errorf("gRPC: %v, %v", decoded, err)
	}
	ids, err := wire.TimeRange(t.Context(), &leafpb.TimeRangeRequest{FromUnixMs: 1700000000001, ToUnixMs: 1700000000003})
	if err != nil || ids.GetRange().GetLo() != r.Lo || ids.GetRange().GetHi() != r.Hi {
		t.Errorf("gRPC: %v, %v", ids, err)
	}
}
