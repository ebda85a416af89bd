// Package answers reads what a node says over gRPC: its IDs, and its errors in its words. The Go client and nodes that
// forward calls read answers by it. An answer counts only as a whole, and only if it is what was asked for: an ID from a
// faulty node or a mixed-up stream may be meant for another caller. Requests for numbers of entities are written here, too,
// beside what reads their answers.
package answers

import (
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// Ranges returns the IDs of an answer to a request for count of them. After an error, other is how many IDs came in
// their place; 0: that is not known.
func Ranges(answer []*leafpb.Range, count int) (ranges []leaf.Range, other int64, err error) {
	ranges = make([]leaf.Range, 0, len(answer))
	total, end := int64(0), int64(0)
	for _, r := range answer {
		if r.GetLo() < end || r.GetHi() <= r.GetLo() || r.GetHi()-r.GetLo() > leaf.MaxBatch {
			return nil, 0, fmt.Errorf("ranges %v are not in order", answer)
		}
		end = r.GetHi()
		total += r.GetHi() - r.GetLo()
		ranges = leaf.AppendRange(ranges, leaf.Range{Lo: r.GetLo(), Hi: r.GetHi()})
	}
	if total != int64(count) {
		return nil, total, fmt.Errorf("%d IDs in place of %d", total, count)
	}
	return ranges, 0, nil
}

// Cut returns the first n IDs of ranges, which have at least as many, and the others. It writes to ranges.
func Cut(ranges []leaf.Range, n int) (first, others []leaf.Range) {
	for want := int64(n); want > 0; {
		part := leaf.Range{Lo: ranges[0].Lo, Hi: min(ranges[0].Hi, ranges[0].Lo+want)}
		first = leaf.AppendRange(first, part)
		want -= part.Len()
		if ranges[0].Lo = part.Hi; ranges[0].Len() == 0 {
			ranges = ranges[1:]
		}
	}
	return first, ranges
}

// SequenceRequest returns the message that asks for numbers of a sequence. Sequence reads its answer.
func SequenceRequest(sequence string, requests []leaf.SequenceRequest) *leafpb.SequenceRequest {
	asked := &leafpb.SequenceRequest{Sequence: sequence, Requests: make([]*leafpb.EntityRequest, len(requests))}
	for i, r := range requests {
		asked.Requests[i] = &leafpb.EntityRequest{Entity: r.Entity, Count: int32(r.Count), Peek: r.Count == 0, From: r.From} //nolint:gosec // at most leaf.MaxBatch
	}
	return asked
}

// Sequence returns the results of an answer to requests for numbers of a sequence.
func Sequence(answer []*leafpb.EntityResponse, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if len(answer) != len(requests) {
		return nil, fmt.Errorf("%d answers to %d requests", len(answer), len(requests))
	}
	results := make([]leaf.SequenceResult, len(answer))
	for i, a := range answer {
		if e := a.GetError(); e != nil {
			results[i].Err = Error(e.GetCode(), e.GetMessage(), time.Duration(e.GetRetryAfterMs())*time.Millisecond)
			continue
		}
		r, asked := leaf.Range{Lo: a.GetRange().GetLo(), Hi: a.GetRange().GetHi()}, requests[i]
		if r.Hi-r.Lo != int64(asked.Count) || r.Lo < asked.From || a.GetRange() == nil {
			return nil, fmt.Errorf("%v in place of %d numbers from %d", r, asked.Count, asked.From)
		}
		results[i].Range = r
	}
	return results, nil
}

// Reason returns the code of leaf's error in a status, "" if it is not leaf's, and when a retry may help.
func Reason(s *status.Status) (code string, after time.Duration) {
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == "leaf" {
				code = d.GetReason()
			}
		case *errdetails.RetryInfo:
			after = d.GetRetryDelay().AsDuration()
		}
	}
	return code, after
}

// Error returns the error that a node gave, in its words. It is of the class of the code, an internal one if this program
// does not know it.
func Error(code, message string, after time.Duration) error {
	class, _ := leaf.ClassByCode(code)
	if message == "" {
		message = class.Title
	}
	cause := class.Err
	if after > 0 && class.Retryable {
		cause = leaf.Later(cause, "the node says", after)
	}
	return &said{message, cause}
}

// said is an error in the words of a node.
type said struct {
	text  string
	cause error // the sentinel; leaf.Throttled with the time to wait; nil: internal
}

func (e *said) Error() string { return e.text }
func (e *said) Unwrap() error { return e.cause }
