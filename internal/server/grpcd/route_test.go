package grpcd_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/opaque"
)

// routed serves both modes; tags that begin with "strict" are in strict order. The epoch is how many
// calls the issuer had when the route was asked for.
func routed(t *testing.T) grpcd.Config {
	t.Helper()
	seg := newIssuer()
	cfg := serves(seg)
	cfg.Access = leaf.Anyone(seg, seg)
	cfg.Formats = &format.Formats{}
	ring := &opaque.Ring{Bits: 63, VersionBits: 2, Keys: map[int][]byte{0: bytes.Repeat([]byte{7}, opaque.SecretSize)}}
	if err := cfg.Formats.Replace(ring, nil); err != nil {
		t.Fatal(err)
	}
	cfg.Route = func(tag string) (string, int64, bool) {
		switch tag {
		case "strict panic":
			panic("the routes are broken")
		case "strict nobody":
			return "", int64(seg.called()), true
		}
		return "10.0.0.7:9090", int64(seg.called()), strings.HasPrefix(tag, "strict")
	}
	return cfg
}

func TestRoute(t *testing.T) {
	owned := func(epoch int64) *leafpb.Route { return &leafpb.Route{Owner: "10.0.0.7:9090", Epoch: epoch} }
	asks := []struct {
		name string
		req  *leafpb.NextRequest
		want *leafpb.Route
		code string // of the error
	}{
		{name: "strict", req: &leafpb.NextRequest{Tag: "strict"}, want: owned(1)},
		{name: "plain after strict", req: &leafpb.NextRequest{Tag: "a"}},
		{name: "several", req: &leafpb.NextRequest{Tag: "strict", Count: 5, Mode: leafpb.Mode_MODE_SEGMENT}, want: owned(3)},
		{name: "no route with an error", req: &leafpb.NextRequest{Tag: "strict", Mode: 7}, code: "bad_request"},
		{name: "texts", req: &leafpb.NextRequest{Tag: "strict", Format: format.OpaqueBase62}, want: owned(4)},
		{name: "snowflake", req: &leafpb.NextRequest{Tag: "strict", Mode: leafpb.Mode_MODE_SNOWFLAKE}},
		{name: "nobody owns it", req: &leafpb.NextRequest{Tag: "strict nobody"}, want: &leafpb.Route{Epoch: 6}},
		{name: "a panic", req: &leafpb.NextRequest{Tag: "strict panic"}, code: "internal"},
		{name: "after a panic", req: &leafpb.NextRequest{Tag: "strict"}, want: owned(8)},
	}
	t.Run("unary", func(t *testing.T) {
		c := client(t, start(t, routed(t)))
		for _, tt := range asks {
			resp, err := c.Next(within(t, 20*time.Second), tt.req)
			if tt.code != "" {
				checkStatus(t, err, tt.code)
			} else if diff := cmp.Diff(tt.want, resp.GetRoute(), protocmp.Transform()); diff != "" || err != nil {
				t.Errorf("%s: %v, route (-want +got):\n%s", tt.name, err, diff)
			}
		}
	})
	t.Run("stream", func(t *testing.T) {
		st := stream(t, client(t, start(t, routed(t))))
		for _, tt := range asks {
			resp := ask(t, st, &leafpb.StreamRequest{Tag: tt.req.GetTag(), Count: tt.req.GetCount(), Mode: tt.req.GetMode(), Format: tt.req.GetFormat()})
			if tt.code != "" {
				checkError(t, resp, tt.code)
			}
			if diff := cmp.Diff(tt.want, resp.GetRoute(), protocmp.Transform()); diff != "" {
				t.Errorf("%s: %v, route (-want +got):\n%s", tt.name, resp, diff)
			}
		}
	})
}

// TestForwarded: a request of another node is let in by the secret alone, and gets issuers that do not
// forward; without the right secret nothing else lets it in.
func TestForwarded(t *testing.T) {
	own := newIssuer()
	own.next["a"] = 1000
	for _, tt := range []struct {
		name      string
		forwarded func(string) *leaf.Issuers
		secrets   []string
		code      string // of the error
	}{
		{name: "right", forwarded: admits(own), secrets: []string{"s3cret"}},
		{name: "wrong", forwarded: admits(own), secrets: []string{"guess"}, code: "unauthenticated"},
		{name: "empty", forwarded: admits(own), secrets: []string{""}, code: "unauthenticated"},
		{name: "twice", forwarded: admits(own), secrets: []string{"s3cret", "guess"}, code: "bad_request"},
		{name: "no other node forwards", secrets: []string{"s3cret"}, code: "unauthenticated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := serves(newIssuer())
			opened := access{cfg.Access, make(chan leaf.Credentials, 10)}
			cfg.Access, cfg.Forwarded = opened, tt.forwarded
			c := client(t, start(t, cfg))
			shown := metadata.MD{"authorization": {"Bearer token"}, "leaf-forwarded": tt.secrets}
			ctx := metadata.NewOutgoingContext(within(t, 20*time.Second), shown)
			resp, err := c.Next(ctx, &leafpb.NextRequest{Tag: "a"})
			st, streamErr := c.Stream(ctx)
			if streamErr != nil {
				t.Fatal(streamErr)
			}
			_ = st.Send(&leafpb.StreamRequest{Tag: "a"}) // Recv has the error
			answer, streamErr := st.Recv()
			if len(opened.opened) > 0 {
				t.Errorf("the access for clients was asked about %+v", <-opened.opened)
			}
			if tt.code != "" {
				checkStatus(t, err, tt.code)
				checkStatus(t, streamErr, tt.code)
				if !strings.Contains(err.Error(), "forwarded") {
					t.Errorf("%v does not say what it is about", err)
				}
				return
			}
			if err != nil || streamErr != nil || resp.GetRanges()[0].GetLo() <= 1000 || answer.GetRanges()[0].GetLo() <= 1000 {
				t.Errorf("got %v, %v and %v, %v; want IDs of the issuers for other nodes", resp, err, answer, streamErr)
			}
		})
	}
}

func admits(own leaf.Issuer) func(string) *leaf.Issuers {
	return func(secret string) *leaf.Issuers {
		if secret != "s3cret" {
			return nil
		}
		return &leaf.Issuers{Segment: own, Snowflake: leaf.Disabled("snowflake")}
	}
}
