package console

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

func writeJSON(w http.ResponseWriter, reply any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", problem.NoStore)
	_ = json.NewEncoder(w).Encode(reply) // the client is gone
}

// Session is what the page learns first, also without a token.
type Session struct {
	Needed   bool `json:"needed"`    // a token is needed, and this browser has shown none
	SignedIn bool `json:"signed_in"` // by a token
	Actions  bool `json:"actions"`
	ReadOnly bool `json:"read_only"` // of a kind that never has actions
	Live     bool `json:"live"`
}

func (c *Console) serveSession(w http.ResponseWriter, r *http.Request) {
	if err := accept.OtherSite(r); err != nil {
		problem.Write(w, c.cfg.Logger, err)
		return
	}
	token, valid := c.sessions.token(c.secretOf(r))
	writeJSON(w, Session{Needed: c.cfg.Required() && !valid, SignedIn: valid, Actions: valid && c.acts(token), ReadOnly: c.cfg.ReadOnly, Live: c.cfg.Live})
}

func (c *Console) serveLogin(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Token string `json:"token"`
	}
	err := fromPage(r)
	if err == nil && json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q) != nil {
		err = leaf.BadField("body", "...", `must be {"token": "..."}`)
	}
	if err == nil && q.Token == "" {
		err = leaf.BadField("token", "", "must not be empty")
	}
	if err == nil {
		err = c.cfg.Check(q.Token, accept.AddressIn(r.RemoteAddr))
	}
	if err != nil {
		problem.Write(w, c.cfg.Logger, err)
		return
	}
	secret, _ := c.sessions.begin(q.Token)
	c.setCookie(w, r, secret, int(sessionTime/time.Second))
	writeJSON(w, Session{SignedIn: true, Actions: c.acts(q.Token), ReadOnly: c.cfg.ReadOnly, Live: c.cfg.Live})
}

func (c *Console) serveLogout(w http.ResponseWriter, r *http.Request) {
	if err := fromPage(r); err != nil {
		problem.Write(w, c.cfg.Logger, err)
		return
	}
	c.sessions.end(c.secretOf(r))
	c.setCookie(w, r, "", -1)
	writeJSON(w, Session{Needed: c.cfg.Required(), ReadOnly: c.cfg.ReadOnly, Live: c.cfg.Live})
}

// fromPage returns an error unless the request was made by this page.
func fromPage(r *http.Request) error {
	if r.Header.Get(Header) == "" {
		return fmt.Errorf("%w: the header %s is missing", leaf.ErrUnauthenticated, Header)
	}
	return accept.OtherSite(r)
}

type read func(context.Context, url.Values) (any, error)

// readings are what the page asks for. Those of live views can be streamed, too.
func (c *Console) readings() map[string]read {
	all := map[string]read{
		"history": func(context.Context, url.Values) (any, error) { return c.cfg.Monitor.History(), nil },
		"rows":    c.rows,
		"workers": func(ctx context.Context, _ url.Values) (any, error) { return c.workers.get(ctx) },
		"cluster": func(ctx context.Context, _ url.Values) (any, error) { return c.cluster.get(ctx) },
		"decode":  func(_ context.Context, v url.Values) (any, error) { return idtime.AskDecode(c.cfg.Source, v) },
		"encode":  c.encode,
		"span":    func(_ context.Context, v url.Values) (any, error) { return idtime.AskRange(c.cfg.Source, v) },
	}
	maps.Copy(all, c.views())
	return all
}

// views are the readings that look at memory only.
func (c *Console) views() map[string]read {
	return map[string]read{
		"overview":  func(ctx context.Context, _ url.Values) (any, error) { return c.overview.get(ctx) },
		"snowflake": func(context.Context, url.Values) (any, error) { return c.cfg.Source.Snowflake(), nil },
		"tags": func(_ context.Context, v url.Values) (any, error) {
			q, err := readTagQuery(v)
			if err != nil {
				return nil, err
			}
			page := c.cfg.Monitor.page(q)
			for i := range page.Tags {
				if c.cfg.Told != nil {
					page.Tags[i].Error = "" // Problem is its class
				}
			}
			return page, nil
		},
	}
}

// RowPage is a part of the rows of all databases.
type RowPage struct {
	Rows any    `json:"rows"`
	Next string `json:"next,omitempty"` // the after of the next page
}

func (c *Console) rows(ctx context.Context, v url.Values) (any, error) {
	limit, err := number(v, "limit", defaultPage, maxTagPage)
	if err != nil {
		return nil, err
	}
	rows, next, err := c.cfg.Source.Rows(ctx, v.Get("after"), max(1, limit))
	return RowPage{rows, next}, err
}

func (c *Console) encode(_ context.Context, v url.Values) (any, error) {
	at, err := idtime.ParseTime("time", v.Get("time"))
	if err != nil {
		return nil, err
	}
	p := Parts{Time: at}
	for name, to := range map[string]*int64{"datacenter": &p.Datacenter, "worker": &p.Worker, "sequence": &p.Sequence} {
		if text := v.Get(name); text != "" {
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, leaf.BadField(name, text, "must be a number")
			}
		}
	}
	return c.cfg.Source.Encode(p)
}
