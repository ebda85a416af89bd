package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/leafpb"
)

// chat is the sequence of all runs, and entities are those whose numbers the clients want. The first two share a row.
const chat = "chat"

var entities = []string{"user-1", "user-1574", "user-2"}

// nextOf is the path of the requests for an entity.
const nextOf = "/v1/sequence/next/"

// rows are the tags of the entities. The sequence has no others: when a fault latches all tags, each of them is repaired
// as its alarm says.
func rows() (all []tag) {
	for _, name := range entities {
		e, err := sequence.Parse(name)
		if err != nil {
			panic(err) // the names are right
		}
		row := sequence.RowName(chat, e.Section())
		if !slices.ContainsFunc(all, func(t tag) bool { return t.name == row }) {
			all = append(all, tag{row, sequence.MinStep, strictOrder})
		}
	}
	return all
}

// entityStreams are what the clients of one node want of entities, each over another protocol at each node.
func entityStreams(number int) (all []stream) {
	for i, e := range entities {
		all = append(all, stream{
			name: "entity-" + e, space: chat + "/" + e, path: nextOf + chat + "/" + e, count: 1 + i%2, rate: 2, strict: true, protocol: protocols[(i+number)%3],
		})
	}
	return all
}

// entity returns of which sequence and entity the stream is, if it is of one.
func (s stream) entity() (sequence, entity string, is bool) {
	path, is := strings.CutPrefix(s.path, nextOf)
	sequence, entity, _ = strings.Cut(path, "/")
	return sequence, entity, is
}

// entityGRPC makes calls for an entity, one at a time.
type entityGRPC struct {
	conn    *grpc.ClientConn
	request *leafpb.SequenceRequest
}

func (g *entityGRPC) close() { _ = g.conn.Close() }

func (g *entityGRPC) fetch(ctx context.Context) ([]int64, string, error) {
	answer, err := leafpb.NewLeafServiceClient(g.conn).Sequence(ctx, g.request)
	switch results := answer.GetResults(); {
	case err != nil:
		outcome, err := statusOutcome(err)
		return nil, outcome, err
	case len(results) != 1:
		return nil, ok, fmt.Errorf("gRPC %v: %d results", g.request, len(results))
	case results[0].GetError() != nil:
		return nil, results[0].GetError().GetCode(), nil
	default:
		got := results[0].GetRange()
		return upTo(got.GetHi()-1, got.GetHi()-got.GetLo()), ok, nil
	}
}

// upTo returns the last n numbers up to one.
func upTo(last, n int64) (all []int64) {
	for number := last - n + 1; number <= last; number++ {
		all = append(all, number)
	}
	return all
}
