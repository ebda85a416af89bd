package grpcd_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/opaque"
)

// TestStreamChangesFormats: answers of one stream share their messages, and none has texts or
// ranges of the answer before it.
func TestStreamChangesFormats(t *testing.T) {
	ring := &opaque.Ring{Bits: 63, VersionBits: 2, Keys: map[int][]byte{0: bytes.Repeat([]byte{7}, opaque.SecretSize)}}
	cfg := serves(newIssuer())
	cfg.Formats = &format.Formats{}
	if err := cfg.Formats.Replace(ring, nil); err != nil {
		t.Fatal(err)
	}
	st := stream(t, client(t, start(t, cfg)))
	var texts []string
	for _, tt := range []struct {
		name           string
		tag, format    string
		count          int32
		ranges, opaque int
		code           string
	}{
		{"numbers", "a", "", 2, 1, 0, ""},
		{"texts", "a", format.OpaqueBase62, 3, 0, 3, ""},
		{"numbers after texts", "a", format.Number, 1, 1, 0, ""},
		{"texts again", "a", format.OpaqueBase62, 1, 0, 1, ""},
		{"an error after texts", "err.exhausted", format.OpaqueBase62, 1, 0, 0, "exhausted"},
		{"a wrong format", "a", "hex", 1, 0, 0, "bad_request"},
		{"texts after an error", "a", format.OpaqueBase62, 2, 0, 2, ""},
	} {
		resp := ask(t, st, &leafpb.StreamRequest{Tag: tt.tag, Count: tt.count, Format: tt.format})
		if len(resp.GetRanges()) != tt.ranges || len(resp.GetTexts()) != tt.opaque || resp.GetError().GetCode() != tt.code {
			t.Errorf("%s: %v", tt.name, resp)
		}
		texts = append(texts, resp.GetTexts()...)
	}
	slices.Sort(texts)
	if n := len(slices.Compact(texts)); n != 6 {
		t.Errorf("%d different texts of 6: %q", n, texts)
	}
}

// TestFullBatchOfTexts: the largest answer fits into what a client of gRPC accepts by default.
func TestFullBatchOfTexts(t *testing.T) {
	const accepted = 4 << 20
	longest := strings.Repeat("9", number.MaxLen) // longer than any opaque ID
	size := proto.Size(&leafpb.NextResponse{Texts: slices.Repeat([]string{longest}, leaf.MaxBatch)})
	if size > accepted {
		t.Errorf("%d bytes, a client accepts %d", size, accepted)
	}
}
