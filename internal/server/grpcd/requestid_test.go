package grpcd_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestRequestIDs: calls and streams show the ID that they bring, and Access finds it in their
// context.
func TestRequestIDs(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, tt := range []struct {
		name  string
		every bool
		md    []string
		want  string // "*": one that was made
	}{
		{"none", false, nil, ""},
		{"one", false, []string{"x-request-id", "abc-1"}, "abc-1"},
		{"of a trace", false, []string{"traceparent", "00-" + trace + "-00f067aa0ba902b7-01"}, trace},
		{"two", false, []string{"x-request-id", "a", "x-request-id", "b"}, ""},
		{"every call gets one", true, nil, "*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := serves(newIssuer())
			asked := access{cfg.Access, make(chan leaf.Credentials, 10)}
			cfg.Access, cfg.RequestIDs = asked, func() bool { return tt.every }
			c := client(t, start(t, cfg))
			check := func(what string, header metadata.MD) {
				t.Helper()
				got := strings.Join(header.Get("x-request-id"), ", ")
				if tt.want == "*" && len(got) != 32 || tt.want != "*" && got != tt.want {
					t.Errorf("%s: %q, want %q", what, got, tt.want)
				}
				if shown := <-asked.opened; shown.Request != got {
					t.Errorf("%s: Access saw %q", what, shown.Request)
				}
			}
			ctx := metadata.AppendToOutgoingContext(within(t, 20*time.Second), append(tt.md, "authorization", "Bearer s")...)
			var header metadata.MD
			if _, err := c.Next(ctx, &leafpb.NextRequest{Tag: "a"}, grpc.Header(&header)); err != nil {
				t.Fatal(err)
			}
			check("Next", header)
			stream, err := c.Stream(ctx)
			if err == nil {
				err = stream.Send(&leafpb.StreamRequest{Tag: "a"})
			}
			if err != nil {
				t.Fatal(err)
			}
			if header, err = stream.Header(); err != nil {
				t.Fatal(err)
			}
			check("Stream", header)
		})
	}
}
