package answers_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/answers"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestCut: callers share the IDs of one answer, in order, and each ID has one of them.
func TestCut(t *testing.T) {
	left := []leaf.Range{{Lo: 1, Hi: 4}, {Lo: 10, Hi: 12}, {Lo: 20, Hi: 21}}
	for _, tt := range []struct {
		n     int
		first []leaf.Range
	}{
		{2, []leaf.Range{{Lo: 1, Hi: 3}}},
		{2, []leaf.Range{{Lo: 3, Hi: 4}, {Lo: 10, Hi: 11}}},
		{0, nil},
		{1, []leaf.Range{{Lo: 11, Hi: 12}}},
		{1, []leaf.Range{{Lo: 20, Hi: 21}}},
	} {
		var first []leaf.Range
		if first, left = answers.Cut(left, tt.n); !slices.Equal(first, tt.first) {
			t.Errorf("%d: %v, want %v", tt.n, first, tt.first)
		}
	}
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRanges(t *testing.T) {
	const whole = leaf.MaxBatch
	for _, tt := range []struct {
		name   string
		answer []leaf.Range
		count  int
		want   []leaf.Range // nil: refused
		other  int64
	}{
		{"one", []leaf.Range{{Lo: 7, Hi: 8}}, 1, []leaf.Range{{Lo: 7, Hi: 8}}, 0},
		{"two that touch", []leaf.Range{{Lo: 7, Hi: 9}, {Lo: 9, Hi: 10}}, 3, []leaf.Range{{Lo: 7, Hi: 10}}, 0},
		{"two with others between", []leaf.Range{{Lo: 7, Hi: 9}, {Lo: 20, Hi: 21}}, 3, []leaf.Range{{Lo: 7, Hi: 9}, {Lo: 20, Hi: 21}}, 0},
		{"none", nil, 1, nil, 0},
		{"too few", []leaf.Range{{Lo: 7, Hi: 9}}, 3, nil, 2},
		{"too many", []leaf.Range{{Lo: 7, Hi: 9}}, 1, nil, 2},
		{"twice", []leaf.Range{{Lo: 7, Hi: 9}, {Lo: 8, Hi: 9}}, 3, nil, 0},
		{"in another order", []leaf.Range{{Lo: 20, Hi: 21}, {Lo: 7, Hi: 9}}, 3, nil, 0},
		{"empty", []leaf.Range{{Lo: 7, Hi: 7}, {Lo: 8, Hi: 9}}, 1, nil, 0},
		{"below 0", []leaf.Range{{Lo: -1, Hi: 0}}, 1, nil, 0},
		{"more than a batch", []leaf.Range{{Lo: 7, Hi: 8 + whole}}, whole + 1, nil, 0},
	} {
		var answer []*leafpb.Range
		for _, r := range tt.answer {
			answer = append(answer, &leafpb.Range{Lo: r.Lo, Hi: r.Hi})
		}
		got, other, err := answers.Ranges(answer, tt.count)
		if !slices.Equal(got, tt.want) || other != tt.other || (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v, %d, %v; want %v, %d", tt.name, got, other, err, tt.want, tt.other)
		}
	}
}

func TestReason(t *testing.T) {
	s, err := status.New(codes.Unavailable, "busy").WithDetails(
		&errdetails.ErrorInfo{Domain: "leaf", Reason: "not_ready"},
		&errdetails.ErrorInfo{Domain: "a proxy", Reason: "overloaded"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)},
	)
	if err != nil {
		t.Fatal(err)
	}
	if code, after := answers.Reason(s); code != "not_ready" || after != 3*time.Second {
		t.Errorf("%q after %v", code, after)
	}
	if code, after := answers.Reason(status.New(codes.Unavailable, "connection refused")); code != "" || after != 0 {
		t.Errorf("of another error: %q after %v", code, after)
	}
}

func TestError(t *testing.T) {
	for _, class := range leaf.Classes() {
		err := answers.Error(class.Code, "as the node says", time.Second)
		if got := leaf.ClassOf(err); got.Code != class.Code || err.Error() != "as the node says" {
			t.Errorf("%s: %v, of class %s", class.Code, err, got.Code)
		}
		if want := class.Retryable; (leaf.RetryAfter(err) == time.Second) != want {
			t.Errorf("%s: a retry after %v", class.Code, leaf.RetryAfter(err))
		}
	}
	if err := answers.Error("of a later version", "", 0); leaf.ClassOf(err).Code != "internal" || err.Error() == "" {
		t.Errorf("a code that is not known: %v", err)
	}
}
