package httpd

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// serveSequence answers a route of sequences, whose query has at most the one parameter. ask makes the request of an entity
// from its value.
func (a *api) serveSequence(parameter string, ask func(value string, given bool) (leaf.SequenceRequest, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, c client, open []string) error {
		value, given, err := only(r.URL.RawQuery, parameter)
		if err != nil {
			return err
		}
		q, err := ask(value, given)
		if err != nil {
			return err
		}
		q.Entity = open[1]
		got, err := c.nextOf(r, open[0], q)
		if err != nil {
			return err
		}
		contentType := contentTypeText
		if prefersJSON(r.Header["Accept"]) {
			contentType = contentTypeJSON
		}
		if q.Count == 0 || !given {
			setHeader(w, contentType)
			w.Write(strconv.AppendInt(nil, got.Lo, 10))
		} else {
			writeBatch(w, contentType, []leaf.Range{got}, nil)
		}
		return nil
	}
}

// nextOf makes one request for an entity.
func (c client) nextOf(r *http.Request, sequence string, q leaf.SequenceRequest) (_ leaf.Range, err error) {
	defer recoverTo(&err)
	if err := leaf.ValidateSequence(sequence, []leaf.SequenceRequest{q}); err != nil {
		return leaf.Range{}, err
	}
	results, err := c.issuers.Sequencer().NextEach(r.Context(), sequence, []leaf.SequenceRequest{q})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return leaf.Range{}, accept.Ended(err)
	}
	return results[0].Range, nil
}

// only returns the value of the one parameter that a query may have.
func only(query, name string) (value string, given bool, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", false, leaf.BadField("query", query, "must be name=value pairs")
	}
	for key := range values {
		if key != name {
			return "", false, leaf.BadField("query", key, "is not known here")
		}
	}
	all := values[name]
	if len(all) > 1 {
		return "", false, leaf.BadField(name, all, "must be given once")
	}
	if len(all) == 0 {
		return "", false, nil
	}
	return all[0], true, nil
}

// askNext asks for numbers, askPeek for none, and askSkip raises what comes next.
func askNext(count string, given bool) (q leaf.SequenceRequest, err error) {
	q.Count = 1
	if given {
		q.Count, err = parseCount(count)
	}
	return q, err
}

func askPeek(string, bool) (q leaf.SequenceRequest, err error) { return q, nil }

func askSkip(to string, _ bool) (q leaf.SequenceRequest, err error) {
	if q.From, err = strconv.ParseInt(to, 10, 64); err != nil || q.From < 0 {
		err = leaf.BadField("to", to, "must be a number, 0 or more")
	}
	return q, err
}

// parseCount reads how many IDs are asked for.
func parseCount(text string) (int, error) {
	count, err := strconv.ParseUint(text, 10, 32) // ParseUint takes no sign, unlike Atoi
	if err != nil || count < 1 || count > leaf.MaxBatch {
		return 0, leaf.BadField("count", text, fmt.Sprintf("must be one number from 1 to %d", leaf.MaxBatch))
	}
	return int(count), nil
}
