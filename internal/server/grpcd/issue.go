package grpcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/leafpb"
)

// maxKept is how many ranges a stream keeps for its next answers. A tag with a step of 1
// answers a full batch with 100,000.
const maxKept = 256

// service is leaf.v1.LeafService.
type service struct {
	leafpb.UnimplementedLeafServiceServer
	access    leaf.Access
	formats   *format.Formats
	times     idtime.Layout
	route     func(tag string) (owner string, epoch int64, strict bool)             // nil: no tag is in strict order
	routeEach func(sequence, entity string) (owner string, epoch int64, known bool) // nil: not known
	forwarded func(secret string) *leaf.Issuers                                     // nil: no other node forwards to this one
	log       *slog.Logger
}

// admit returns what a call may take its IDs from.
func (s *service) admit(ctx context.Context) (*leaf.Issuers, error) {
	if secrets := metadata.ValueFromIncomingContext(ctx, forwardedKey); len(secrets) > 0 {
		return s.admitNode(secrets)
	}
	shown, err := credentialsOf(ctx)
	if err != nil {
		return nil, err
	}
	return s.access.Open(shown)
}

// Next answers one call.
func (s *service) Next(ctx context.Context, req *leafpb.NextRequest) (*leafpb.NextResponse, error) {
	issuers, err := s.admit(ctx)
	if err != nil {
		return nil, statusOf(requestid.Log(s.log, requestid.ID(ctx)), err)
	}
	var one [1]leaf.Range
	got, err := s.issue(ctx, issuers, req, one[:])
	if err != nil {
		return nil, statusOf(requestid.Log(s.log, requestid.ID(ctx)), err)
	}
	return &leafpb.NextResponse{Ranges: appendRanges(nil, got.ranges), Texts: got.texts, Route: got.route}, nil
}

// Stream answers the requests of a stream one after the other. Its messages are used
// again and again, which is safe because RecvMsg and SendMsg keep nothing of them.
func (s *service) Stream(stream grpc.BidiStreamingServer[leafpb.StreamRequest, leafpb.StreamResponse]) error {
	ctx := stream.Context()
	issuers, err := s.admit(ctx)
	if err != nil {
		return statusOf(requestid.Log(s.log, requestid.ID(ctx)), err)
	}
	var (
		req  leafpb.StreamRequest
		resp leafpb.StreamResponse
		one  [1]leaf.Range
	)
	for {
		if err := stream.RecvMsg(&req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		got, err := s.issue(ctx, issuers, &req, one[:])
		resp.Error, resp.Texts, resp.Route = nil, got.texts, got.route
		if err != nil {
			resp.Error = messageOf(requestid.Log(s.log, requestid.ID(ctx)), err)
		}
		if cap(resp.Ranges) > maxKept {
			resp.Ranges = nil
		}
		resp.Ranges = appendRanges(resp.Ranges[:0], got.ranges)
		if err := stream.SendMsg(&resp); err != nil {
			return err
		}
	}
}

// request is what NextRequest and StreamRequest have in common.
type request interface {
	GetTag() string
	GetCount() int32
	GetMode() leafpb.Mode
	GetFormat() string
}

// issued is what a request gets: ranges or, in a format that is not of numbers, texts.
type issued struct {
	ranges []leaf.Range
	texts  []string
	route  *leafpb.Route // nil: the tag is not in strict order
}

// issue returns the IDs for req, or an error and nothing else. It uses one for a single ID.
func (s *service) issue(ctx context.Context, issuers *leaf.Issuers, req request, one []leaf.Range) (_ issued, err error) {
	defer recoverTo(&err)
	if err := leaf.ValidateTag(req.GetTag()); err != nil {
		return issued{}, err
	}
	n := int(req.GetCount())
	if n == 0 {
		n = 1
	}
	if n < 1 || n > leaf.MaxBatch {
		return issued{}, leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d, or 0 for 1", leaf.MaxBatch))
	}
	var issuer leaf.Issuer
	var f *format.Format
	switch mode := req.GetMode(); mode {
	case leafpb.Mode_MODE_UNSPECIFIED, leafpb.Mode_MODE_SEGMENT:
		issuer = issuers.Segment
		f, err = s.formats.Segment(req.GetTag(), req.GetFormat())
	case leafpb.Mode_MODE_SNOWFLAKE:
		issuer = issuers.Snowflake
		f, err = s.formats.Snowflake(req.GetFormat())
	default:
		err = leaf.BadField("mode", mode, "must be MODE_SEGMENT or MODE_SNOWFLAKE")
	}
	if err != nil {
		return issued{}, err
	}
	got := issued{ranges: one}
	if n > 1 {
		got.ranges, err = issuer.NextN(ctx, req.GetTag(), n)
	} else {
		one[0].Lo, err = issuer.Next(ctx, req.GetTag())
		one[0].Hi = one[0].Lo + 1
	}
	if err != nil {
		return issued{}, accept.Ended(err)
	}
	if f != nil {
		if err := f.Check(got.ranges...); err != nil {
			return issued{}, err
		}
		got = issued{texts: f.Texts(got.ranges)}
	}
	got.route = s.routeOf(req)
	return got, nil
}

// appendRanges appends ranges to dst, using again the elements behind its end.
func appendRanges(dst []*leafpb.Range, ranges []leaf.Range) []*leafpb.Range {
	for _, r := range ranges {
		if n := len(dst); n < cap(dst) && dst[:n+1][n] != nil {
			dst = dst[:n+1]
		} else {
			dst = append(dst, new(leafpb.Range))
		}
		last := dst[len(dst)-1]
		last.Lo, last.Hi = r.Lo, r.Hi
	}
	return dst
}
