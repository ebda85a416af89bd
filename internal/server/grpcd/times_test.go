package grpcd_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestTimes: what the layout says reaches the client, and so does why it says nothing.
func TestTimes(t *testing.T) {
	cfg := serves(newIssuer())
	cfg.Times = servertest.Times(func(id int64) (idtime.Decoded, error) {
		if id < 0 {
			return idtime.Decoded{}, leaf.BadField("id", id, "must be 0 to 9")
		}
		d := idtime.Decoded{UnixMilli: 1000, Worker: 2, Sequence: id, Layout: "test"}
		if id == 8 {
			d.Datacenter = new(int64(0))
		}
		return d, nil
	})
	c, ctx := client(t, start(t, cfg)), within(t, 10*time.Second)
	for id, want := range map[int64]*leafpb.DecodeResponse{
		7: {UnixMs: 1000, Worker: 2, Sequence: 7, Layout: "test"},
		8: {UnixMs: 1000, Worker: 2, Sequence: 8, Datacenter: new(int64(0)), Layout: "test"},
	} {
		got, err := c.Decode(ctx, &leafpb.DecodeRequest{Id: id})
		if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%d: %v\n%s", id, err, diff)
		}
	}
	if _, err := c.Decode(ctx, &leafpb.DecodeRequest{Id: -1}); !errors.Is(read(err), leaf.ErrBadRequest) {
		t.Errorf("no ID: %v", err)
	}
	for _, tt := range []struct{ from, to, hi int64 }{{1000, 5000, 5000}, {1000, 0, 1001}, {1000, 1000, 0}, {1000, -1, 0}} {
		got, err := c.TimeRange(ctx, &leafpb.TimeRangeRequest{FromUnixMs: tt.from, ToUnixMs: tt.to})
		if tt.hi == 0 && !errors.Is(read(err), leaf.ErrBadRequest) || tt.hi != 0 && (err != nil || got.GetRange().GetLo() != tt.from || got.GetRange().GetHi() != tt.hi || got.GetLayout() != "test") {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
	without := client(t, start(t, serves(newIssuer())))
	if _, err := without.Decode(ctx, &leafpb.DecodeRequest{Id: 7}); !errors.Is(read(err), leaf.ErrDisabled) {
		t.Errorf("without a layout: %v", err)
	}
	k := serves(nil)
	k.Access, k.Times = access{leaf.Anyone(nil, nil), make(chan leaf.Credentials, 2)}, cfg.Times
	refused := client(t, start(t, k))
	_, err1 := refused.Decode(ctx, &leafpb.DecodeRequest{Id: 7})
	_, err2 := refused.TimeRange(ctx, &leafpb.TimeRangeRequest{FromUnixMs: 1})
	if !errors.Is(read(err1), leaf.ErrUnauthenticated) || !errors.Is(read(err2), leaf.ErrUnauthenticated) {
		t.Errorf("without a token: %v, %v", err1, err2)
	}
}
