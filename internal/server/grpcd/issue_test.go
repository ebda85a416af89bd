package grpcd_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
)

// requests are answered by Next and by Stream alike.
var requests = []struct {
	name  string
	tag   string
	count int32
	mode  leafpb.Mode
	want  []*leafpb.Range
	code  string // of the error
}{
	{name: "one", tag: "a", count: 1, mode: leafpb.Mode_MODE_SEGMENT, want: []*leafpb.Range{{Lo: 1, Hi: 2}}},
	{name: "nothing said means one of segment mode", tag: "a", want: []*leafpb.Range{{Lo: 1, Hi: 2}}},
	{name: "many", tag: "a", count: 100, want: []*leafpb.Range{{Lo: 1, Hi: 101}}},
	{name: "most", tag: "a", count: leaf.MaxBatch, want: []*leafpb.Range{{Lo: 1, Hi: leaf.MaxBatch + 1}}},
	{name: "two ranges", tag: "gap", count: 10, want: []*leafpb.Range{{Lo: 1, Hi: 6}, {Lo: 1006, Hi: 1011}}},
	{name: "the longest tag", tag: strings.Repeat("\U0001F343", leaf.MaxTagLen), want: []*leafpb.Range{{Lo: 1, Hi: 2}}},
	{name: "too many", tag: "a", count: leaf.MaxBatch + 1, code: "bad_request"},
	{name: "fewer than none", tag: "a", count: -1, code: "bad_request"},
	{name: "no tag", code: "bad_request"},
	{name: "a tag that is too long", tag: strings.Repeat("a", leaf.MaxTagLen+1), code: "bad_request"},
	{name: "no such mode", tag: "a", mode: 7, code: "bad_request"},
	{name: "mode not enabled", tag: "a", mode: leafpb.Mode_MODE_SNOWFLAKE, code: "disabled"},
	{name: "panic", tag: "panic", code: "internal"},
	{name: "internal", tag: "err.internal", code: "internal"},
	{name: "unknown tag", tag: "err.unknown_tag", code: "unknown_tag"},
	{name: "throttled", tag: "throttled", code: "throttled"},
	{name: "exhausted", tag: "err.exhausted", code: "exhausted"},
	{name: "regress", tag: "err.regress", code: "regress"},
	{name: "clock", tag: "err.clock", code: "clock"},
}

func TestNext(t *testing.T) {
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, start(t, serves(newIssuer())))
			resp, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: tt.tag, Count: tt.count, Mode: tt.mode})
			if tt.code != "" {
				checkStatus(t, err, tt.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, resp.GetRanges(), protocmp.Transform()); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryClass holds the status of every error against the one table.
func TestEveryClass(t *testing.T) {
	c := client(t, start(t, serves(newIssuer())))
	st := stream(t, c)
	for _, class := range leaf.Classes() {
		_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "err." + class.Code})
		checkStatus(t, err, class.Code)
		checkError(t, ask(t, st, &leafpb.StreamRequest{Tag: "err." + class.Code}), class.Code)
	}
}

func TestRetryAfter(t *testing.T) {
	c := client(t, start(t, serves(newIssuer())))
	_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "throttled"})
	var after time.Duration
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			after = r.GetRetryDelay().AsDuration()
		}
	}
	if after != 1500*time.Millisecond {
		t.Errorf("RetryInfo says %v, want 1.5s", after)
	}
	if got := ask(t, stream(t, c), &leafpb.StreamRequest{Tag: "throttled"}).GetError().GetRetryAfterMs(); got != 1500 {
		t.Errorf("a stream says %d ms, want 1500", got)
	}
}

// checkStatus expects err to be the status of the class with this code.
func checkStatus(t *testing.T, err error, code string) {
	t.Helper()
	class, _ := leaf.ClassByCode(code)
	st := status.Convert(err)
	if st.Code() != codes.Code(class.GRPC) {
		t.Errorf("%s: got %v, want status %v", code, err, codes.Code(class.GRPC))
	}
	if strings.Contains(st.Message(), "12345") || strings.Contains(st.Message(), "panic") {
		t.Errorf("the cause of an internal error went out: %q", st.Message())
	}
	var info *errdetails.ErrorInfo
	for _, d := range st.Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok {
			info = i
		}
	}
	want := &errdetails.ErrorInfo{Domain: "leaf", Reason: code, Metadata: map[string]string{"retryable": "false"}}
	if class.Retryable {
		want.Metadata["retryable"] = "true"
	}
	if diff := cmp.Diff(want, info, protocmp.Transform()); diff != "" {
		t.Errorf("%s: ErrorInfo (-want +got):\n%s", code, diff)
	}
}

// checkError expects resp to be the error of the class with this code, and no IDs.
func checkError(t *testing.T, resp *leafpb.StreamResponse, code string) {
	t.Helper()
	class, _ := leaf.ClassByCode(code)
	got := resp.GetError()
	if got.GetCode() != code || got.GetRetryable() != class.Retryable || got.GetMessage() == "" || len(resp.GetRanges()) > 0 {
		t.Errorf("got %v, want the error %s", resp, code)
	}
	if strings.Contains(got.GetMessage(), "12345") || strings.Contains(got.GetMessage(), "broken") {
		t.Errorf("the cause of an internal error went out: %q", got.GetMessage())
	}
}

func TestInternalErrorsAreLogged(t *testing.T) {
	var log strings.Builder
	cfg := serves(newIssuer())
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c := client(t, start(t, cfg))
	for _, tag := range []string{"err.internal", "panic"} {
		_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: tag})
		checkStatus(t, err, "internal")
	}
	for _, cause := range []string{"the password is 12345", "the issuer is broken", "issue.go"} {
		if !strings.Contains(log.String(), cause) {
			t.Errorf("the log does not say %q:\n%s", cause, log.String())
		}
	}
}

func TestDeadlineReachesTheIssuer(t *testing.T) {
	seg := newIssuer()
	c := client(t, start(t, serves(seg)))
	resp, err := c.Next(within(t, 100*time.Second), &leafpb.NextRequest{Tag: "deadline"})
	if err != nil {
		t.Fatal(err)
	}
	if left := resp.GetRanges()[0].GetLo(); left < 60 || left > 100 {
		t.Errorf("the issuer had %d s left, want nearly 100", left)
	}
	ctx, cancel := context.WithCancel(within(t, 20*time.Second))
	failed := make(chan error, 1)
	go func() {
		_, err := c.Next(ctx, &leafpb.NextRequest{Tag: "block"})
		failed <- err
	}()
	<-seg.entered
	cancel() // and Shutdown does not wait for the issuer
	if err := <-failed; status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want the cancellation", err)
	}
}

// access notes the credentials that it was asked about, and refuses those without a
// token.
type access struct {
	leaf.Access
	opened chan leaf.Credentials
}

func (access) Guarded() bool { return true }

func (a access) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	a.opened <- c
	if c.Token == "" {
		return nil, leaf.ErrUnauthenticated
	}
	return a.Access.Open(c)
}

func TestCredentials(t *testing.T) {
	cfg := serves(newIssuer())
	asked := access{cfg.Access, make(chan leaf.Credentials, 10)}
	cfg.Access = asked
	s := start(t, cfg)
	for _, tt := range []struct {
		name string
		md   []string
		want leaf.Credentials
	}{
		{"none", nil, leaf.Credentials{}},
		{"token", []string{"authorization", "Bearer secret"}, leaf.Credentials{Token: "secret"}},
		{"the scheme has no case", []string{"Authorization", "bEARER secret"}, leaf.Credentials{Token: "secret"}},
		{"another scheme", []string{"authorization", "Basic secret"}, leaf.Credentials{}},
		{"no scheme", []string{"authorization", "secret"}, leaf.Credentials{}},
		{"token and name", []string{"leaf-client", "shop", "authorization", "Bearer s"}, leaf.Credentials{Token: "s", Name: "shop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, s)
			tt.want.Address = netip.MustParseAddr("127.0.0.1")
			ctx := metadata.AppendToOutgoingContext(within(t, 20*time.Second), tt.md...)
			_, err := c.Next(ctx, &leafpb.NextRequest{Tag: "a"})
			if got := <-asked.opened; got != tt.want {
				t.Errorf("Next opened with %+v, want %+v", got, tt.want)
			}
			st, streamErr := c.Stream(ctx)
			if streamErr != nil {
				t.Fatal(streamErr)
			}
			for range 3 {
				_ = st.Send(&leafpb.StreamRequest{Tag: "a"}) // Recv has the error
			}
			_, streamErr = st.Recv()
			if got := <-asked.opened; got != tt.want {
				t.Errorf("Stream opened with %+v, want %+v", got, tt.want)
			}
			if tt.want.Token == "" {
				checkStatus(t, err, "unauthenticated")
				checkStatus(t, streamErr, "unauthenticated")
			} else if err != nil || streamErr != nil {
				t.Errorf("refused: %v, %v", err, streamErr)
			}
			if len(asked.opened) > 0 {
				t.Errorf("Stream asked again: %+v", <-asked.opened)
			}
		})
	}
}

// TestCredentialsGivenTwice: a proxy in front may have looked at the other one.
func TestCredentialsGivenTwice(t *testing.T) {
	c := client(t, start(t, serves(newIssuer())))
	for _, key := range []string{"authorization", "leaf-client"} {
		ctx := metadata.AppendToOutgoingContext(within(t, 20*time.Second), key, "Bearer s", key, "Bearer t")
		_, err := c.Next(ctx, &leafpb.NextRequest{Tag: "a"})
		checkStatus(t, err, "bad_request")
		st, err := c.Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Recv()
		checkStatus(t, err, "bad_request")
		if !strings.Contains(strings.ToLower(err.Error()), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []grpcd.Config{
		{MaxConns: -1},
		{MaxStreams: -1},
		{ConnectTimeout: -time.Second},
		{IdleTimeout: time.Microsecond},
		{WriteTimeout: time.Microsecond},
		{KeepAlive: time.Millisecond},
		{KeepAliveTimeout: -1},
		{MinPing: -1},
	} {
		if s, err := grpcd.New(servertest.Listen(t, "127.0.0.1:0"), cfg); leaf.ClassOf(err).Code != "bad_request" {
			t.Errorf("New(%+v) = %v, %v; want bad_request", cfg, s, err)
		}
	}
}
