package servertest

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
)

// Start starts a server that takes its IDs from a, until the test ends, and returns
// issuers that ask it over the wire, showing no credentials. They are used by many
// goroutines at the same time.
type Start func(t testing.TB, a leaf.Access) leaf.Issuers

// Options says what a protocol cannot do, and how its client shows credentials. The zero
// value is a protocol that can do everything.
type Options struct {
	// OneRange: a batch is one run of numbers, so a batch with a gap cannot be answered.
	// The reply of INCRBY is a single number.
	OneRange bool

	// ZeroIsOne: a count of 0 cannot be told from none, which means 1 (protobuf).
	ZeroIsOne bool

	// NoCancel: an issuer that waits does not learn that its caller has given up. The
	// protocol has no deadlines, and the server does not watch a connection while it
	// makes a reply.
	NoCancel bool

	// ValidUTF8: a string that is not valid UTF-8 cannot be sent (protobuf, JSON).
	ValidUTF8 bool

	// RetryUnit is the unit in which the protocol says when to retry, rounded up.
	// Default 1 ms.
	RetryUnit time.Duration

	// StartAs is Start for a client that shows credentials. Only a token and a name are
	// asked for. Default: the cases that need it are left out.
	StartAs func(t testing.TB, a leaf.Access, c leaf.Credentials) leaf.Issuers

	// StartFormats is Start for a server with keys and templates, and a client that asks for IDs as texts.
	// Default: the cases about formats are left out.
	StartFormats func(t testing.TB, a leaf.Access, k *format.Formats) Texts
}

// Texts asks over the wire for n IDs in a format. The mode is "segment" or "snowflake"; an n of 0
// is one ID, asked for without a count. In the format "number" the texts are digits.
type Texts func(ctx context.Context, mode, tag string, n int, name string) ([]string, error)

// Run holds a server to the package's promises. start is called once per case.
func (o Options) Run(t *testing.T, start Start) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.leftOut != nil && c.leftOut(o) {
				t.Skip("this protocol has no way to say it")
			}
			c.run(&bench{TB: t, start: start, opt: o, patience: 30 * time.Second, deadline: 200 * time.Millisecond})
		})
	}
}

// testCase is one behaviour. leftOut says that a protocol cannot show it.
type testCase struct {
	name    string
	run     func(b *bench)
	leftOut func(o Options) bool
}

var cases = []testCase{
	{name: "one ID", run: oneID},
	{name: "a batch in one range", run: batch},
	{name: "a batch in several ranges", run: batchWithGaps, leftOut: func(o Options) bool { return o.OneRange }},
	{name: "tags are exact", run: exactTags},
	{name: "a wrong tag", run: wrongTag},
	{name: "a tag that is not UTF-8", run: brokenTag, leftOut: func(o Options) bool { return o.ValidUTF8 }},
	{name: "a wrong count", run: wrongCount},
	{name: "a count of zero", run: zeroCount, leftOut: func(o Options) bool { return o.ZeroIsOne }},
	{name: "every class of error", run: everyClass},
	{name: "the retry hint", run: retryHint},
	{name: "an internal error", run: internalError},
	{name: "a panic", run: panics},
	{name: "a mode that is off", run: disabledMode},
	{name: "not authenticated", run: unauthenticated},
	{name: "credentials", run: credentials, leftOut: func(o Options) bool { return o.StartAs == nil }},
	{name: "formats", run: formats, leftOut: noFormats},
	{name: "a wrong format", run: wrongFormat, leftOut: noFormats},
	{name: "an ID beyond a format", run: beyondFormat, leftOut: noFormats},
	{name: "templates of tags", run: templatesOfTags, leftOut: noFormats},
	{name: "keys that are exchanged", run: otherKeys, leftOut: noFormats},
	{name: "the caller's deadline", run: deadline},
	{name: "many callers", run: manyCallers},
}

func noFormats(o Options) bool { return o.StartFormats == nil }

// bench is what a case works with.
type bench struct {
	testing.TB
	start    Start
	opt      Options
	patience time.Duration // bounds a call that is expected to be answered at once
	deadline time.Duration // of a call that is expected not to be answered
}

// call returns the context of one call.
func (b *bench) call(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	b.Cleanup(cancel)
	return ctx
}

// way is one of the four kinds of calls.
type way struct {
	mode string
	n    int // 0: Next
}

// ways is every kind of call.
var ways = []way{{segment, 0}, {segment, 3}, {snowflake, 0}, {snowflake, 3}}

const (
	segment   = "segment"
	snowflake = "snowflake"
)

func (w way) String() string {
	if w.n == 0 {
		return w.mode + ".Next"
	}
	return w.mode + ".NextN"
}

// ask makes the call.
func (w way) ask(ctx context.Context, i leaf.Issuers, tag string) ([]leaf.Range, error) {
	issuer := i.Segment
	if w.mode == snowflake {
		issuer = i.Snowflake
	}
	if w.n == 0 {
		id, err := issuer.Next(ctx, tag)
		if err != nil {
			return nil, err
		}
		return []leaf.Range{{Lo: id, Hi: id + 1}}, nil
	}
	ranges, err := issuer.NextN(ctx, tag, w.n)
	var merged []leaf.Range // a protocol that lists IDs has no ranges to give
	for _, r := range ranges {
		merged = leaf.AppendRange(merged, r)
	}
	return merged, err
}
