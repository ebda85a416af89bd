package grpcd_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestBehaviour holds both ways of LeafService to what every protocol promises.
func TestBehaviour(t *testing.T) {
	for _, way := range []struct {
		name string
		ask  asker
	}{{"unary", askNext}, {"stream", askStream}} {
		t.Run(way.name, func(t *testing.T) {
			startFormats := func(t testing.TB, a leaf.Access, k *format.Formats) servertest.Texts {
				cfg := serves(nil)
				cfg.Access, cfg.Formats = a, k
				return wire{ask: way.ask, c: client(t, start(t, cfg))}.texts
			}
			startAs := func(t testing.TB, a leaf.Access, c leaf.Credentials) leaf.Issuers {
				cfg := serves(nil)
				cfg.Access = a
				w := wire{way.ask, client(t, start(t, cfg)), c, leafpb.Mode_MODE_SEGMENT}
				issuers := leaf.Issuers{Segment: w}
				w.mode = leafpb.Mode_MODE_SNOWFLAKE
				issuers.Snowflake = w
				return issuers
			}
			servertest.Options{ZeroIsOne: true, ValidUTF8: true, StartAs: startAs, StartFormats: startFormats}.Run(t, func(t testing.TB, a leaf.Access) leaf.Issuers {
				return startAs(t, a, leaf.Credentials{})
			})
		})
	}
}

// asker makes one request. Its error is what the server said.
type asker func(ctx context.Context, c leafpb.LeafServiceClient, req *leafpb.NextRequest) (answer, error)

// answer is what a response holds, if it is no error.
type answer interface {
	GetRanges() []*leafpb.Range
	GetTexts() []string
}

func askNext(ctx context.Context, c leafpb.LeafServiceClient, req *leafpb.NextRequest) (answer, error) {
	resp, err := c.Next(ctx, req)
	return resp, read(err)
}

func askStream(ctx context.Context, c leafpb.LeafServiceClient, req *leafpb.NextRequest) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.Stream(ctx)
	if err != nil {
		return nil, read(err)
	}
	_ = st.Send(&leafpb.StreamRequest{Tag: req.GetTag(), Count: req.GetCount(), Mode: req.GetMode(), Format: req.GetFormat()}) // Recv has the error
	resp, err := st.Recv()
	if err != nil {
		return nil, read(err)
	}
	if e := resp.GetError(); e != nil {
		return nil, restore(e.GetCode(), e.GetMessage(), time.Duration(e.GetRetryAfterMs())*time.Millisecond)
	}
	return resp, nil
}

// read returns the error that a status stands for.
func read(err error) error {
	if err == nil {
		return nil
	}
	var code string
	var after time.Duration
	st := status.Convert(err)
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			code = d.GetReason()
		case *errdetails.RetryInfo:
			after = d.GetRetryDelay().AsDuration()
		}
	}
	if code == "" {
		if ctx := status.FromContextError(context.DeadlineExceeded); st.Code() == ctx.Code() {
			return context.DeadlineExceeded
		}
		return err
	}
	return restore(code, st.Message(), after)
}

func restore(code, message string, after time.Duration) error {
	class, ok := leaf.ClassByCode(code)
	switch {
	case !ok:
		return fmt.Errorf("the code %q is not in the table: %s", code, message)
	case class.Err == nil:
		return fmt.Errorf("internal: %s", message)
	case after > 0:
		return leaf.Later(class.Err, message, after)
	}
	return fmt.Errorf("%w: %s", class.Err, message)
}

// wire is a leaf.Issuer over gRPC.
type wire struct {
	ask  asker
	c    leafpb.LeafServiceClient
	show leaf.Credentials
	mode leafpb.Mode
}

func (w wire) Next(ctx context.Context, tag string) (int64, error) {
	ranges, err := w.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	if len(ranges) != 1 || ranges[0].Len() != 1 {
		return 0, fmt.Errorf("asked for one ID, got %v", ranges)
	}
	return ranges[0].Lo, nil
}

func (w wire) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if w.show.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.show.Token)
	}
	if w.show.Name != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "leaf-client", w.show.Name)
	}
	got, err := w.ask(ctx, w.c, &leafpb.NextRequest{Tag: tag, Count: int32(n), Mode: w.mode})
	if err != nil {
		return nil, err
	}
	return rangesOf(got), nil
}

func rangesOf(a answer) (ranges []leaf.Range) {
	for _, r := range a.GetRanges() {
		ranges = append(ranges, leaf.Range{Lo: r.GetLo(), Hi: r.GetHi()})
	}
	return ranges
}

// texts asks for IDs in a format. It wants numbers as ranges, and other formats as texts.
func (w wire) texts(ctx context.Context, mode, tag string, n int, name string) ([]string, error) {
	req := &leafpb.NextRequest{Tag: tag, Count: int32(n), Format: name}
	if mode == leaf.SnowflakeMode {
		req.Mode = leafpb.Mode_MODE_SNOWFLAKE
	}
	got, err := w.ask(ctx, w.c, req)
	if err != nil {
		return nil, err
	}
	ranges := rangesOf(got)
	if (len(ranges) > 0) != (name == format.Number) {
		return nil, fmt.Errorf("%s is %v: want ranges exactly if it is numbers", name, ranges)
	}
	texts := got.GetTexts()
	for id := range leaf.IDs(ranges) {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	return texts, nil
}
