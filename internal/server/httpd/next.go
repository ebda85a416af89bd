package httpd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// ask is one entry of a request for several tags.
type ask struct {
	mode     Mode
	modeText string // as it was given
	tag      string
	count    int

	formatText string // as it was given
	format     *format.Format
}

// answer is the reply to one entry: ranges, IDs in a format, or an error.
type answer struct {
	Tag    string         `json:"tag,omitempty"`
	Mode   string         `json:"mode,omitempty"`
	Format string         `json:"format,omitempty"`
	Ranges []leaf.Range   `json:"ranges,omitempty"`
	Error  *problem.Error `json:"error,omitempty"`

	texts  []leaf.Range // to be written in format, as the last member "ids"
	format *format.Format
}

// answers is the body of the reply to POST /v1/next.
type answers struct {
	Results []answer `json:"results"`
}

// serveNext answers POST /v1/next. A request that is wrong in any part takes no ID.
func (a *api) serveNext(w http.ResponseWriter, r *http.Request, c client, _ []string) error {
	asks, err := readAsks(w, r)
	if err != nil {
		return err
	}
	texts := false
	for i := range asks {
		q := &asks[i]
		if q.format, err = a.format(q.mode, q.tag, q.formatText); err != nil {
			return fmt.Errorf("requests[%d]: %w", i, err)
		}
		texts = texts || q.format != nil
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
	if texts {
		return writeAnswers(w, results)
	}
	return writeJSON(w, http.StatusOK, answers{results})
}

// writeAnswers is writeJSON for answers with texts: a full batch of them has 2 MB, so they are
// written piecemeal.
func writeAnswers(w http.ResponseWriter, results []answer) error {
	heads := make([]string, len(results))
	for i, reply := range results {
		head, err := json.Marshal(reply)
		if err != nil {
			return fmt.Errorf("encode %T: %w", reply, err)
		}
		heads[i] = string(head)
	}
	setHeader(w, contentTypeJSON)
	w.Write([]byte(`{"results":[`))
	for i, reply := range results {
		if i > 0 {
			w.Write([]byte(","))
		}
		if reply.texts == nil {
			w.Write([]byte(heads[i]))
			continue
		}
		open := strings.TrimSuffix(heads[i], "}") + `,"ids":[` // there is a member: the format
		writeIDs(w, reply.texts, reply.format, frame{open, `"`, `"`, ",", "]}"})
	}
	w.Write([]byte("]}\n"))
	return nil
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
	reply := answer{Tag: q.tag, Mode: q.modeText, Format: q.formatText, format: q.format}
	ranges, err := c.nextN(ctx, q.mode, q.tag, q.count, q.format)
	switch {
	case err != nil:
		reply.Error = problem.Report(requestid.Log(a.log, requestid.ID(ctx)), err)
	case q.format != nil:
		reply.texts = ranges
	default:
		reply.Ranges = ranges
	}
	return reply
}
