package httpd

import (
	"context"
	"net/http"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// ask is one entry of a request for several tags.
type ask struct {
	mode     Mode
	modeText string // as it was given
	tag      string
	count    int
}

// answer is the reply to one entry: ranges or an error.
type answer struct {
	Tag    string         `json:"tag,omitempty"`
	Mode   string         `json:"mode,omitempty"`
	Ranges []leaf.Range   `json:"ranges,omitempty"`
	Error  *problem.Error `json:"error,omitempty"`
}

// answers is the body of the reply to POST /v1/next.
type answers struct {
	Results []answer `json:"results"`
}

// serveNext answers POST /v1/next. A request that is wrong in any part takes no ID.
func (a *api) serveNext(w http.ResponseWriter, r *http.Request, c client, _ string) error {
	asks, err := readAsks(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.batchTime)
	defer cancel()
	results := make([]answer, len(asks))
	var group sync.WaitGroup
	for _, entries := range byStock(asks) {
		take := func() {
			for _, i := range entries {
				results[i] = a.take(ctx, c, asks[i])
			}
		}
		if len(entries) == len(asks) {
			take()
		} else {
			group.Go(take)
		}
	}
	group.Wait()
	return writeJSON(w, http.StatusOK, answers{results})
}

// byStock returns the numbers of the entries, those that draw on the same IDs together:
// they are answered one after the other, so that their IDs grow, and do not wait for
// others.
func byStock(asks []ask) [][]int {
	type stock struct {
		mode Mode
		tag  string
	}
	var groups [][]int
	at := make(map[stock]int, len(asks))
	for i, q := range asks {
		s := stock{q.mode, q.tag}
		if q.mode == Snowflake {
			s.tag = "" // a name for the log only
		}
		g, ok := at[s]
		if !ok {
			g = len(groups)
			at[s] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// take answers one entry.
func (a *api) take(ctx context.Context, c client, q ask) answer {
	reply := answer{Tag: q.tag, Mode: q.modeText}
	ranges, err := c.nextN(ctx, q)
	if err != nil {
		reply.Error = problem.Report(a.log, accept.Ended(err))
		return reply
	}
	reply.Ranges = ranges
	return reply
}

func (c client) nextN(ctx context.Context, q ask) (_ []leaf.Range, err error) {
	defer recoverTo(&err)
	return c.issuer(q.mode).NextN(ctx, q.tag, q.count)
}
