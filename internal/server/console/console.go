package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// Prefix is where a Console is mounted. The page itself uses relative addresses only, so a
// proxy may put anything before it.
const Prefix = "/console/"

// Config is what a Console needs. All fields but the switches, Acts and Told are required.
type Config struct {
	Source  Source
	Monitor *Monitor
	Logger  *slog.Logger

	Check    func(token string, from netip.Addr) error // leaf.ErrUnauthenticated if the token is not accepted
	Required func() bool                               // whether a token must be shown; without one there are no actions
	Acts     func(token string) bool                   // whether an accepted token may change something; nil: each may
	Told     func(error) error                         // what those who look are told of an error, and of a failed load only its class; nil: all
	ReadOnly bool                                      // never an action
	Secure   bool                                      // the listener speaks TLS
	Live     bool                                      // streams; else the page asks every two seconds
}

// Console serves the page. Make it with New, and Close it before its server.
type Console struct {
	cfg      Config
	sessions sessions
	mux      *http.ServeMux
	streams  chan struct{}   // a slot for each
	ended    context.Context //nolint:containedctx // ends all streams
	end      context.CancelFunc

	overview shared[Overview]
	workers  shared[any]
	cluster  shared[any]
}

const (
	maxStreams = 64
	readTime   = 10 * time.Second
	maxBody    = 4 << 10
)

// New returns a Console.
func New(cfg Config) *Console {
	c := &Console{cfg: cfg, mux: http.NewServeMux(), streams: make(chan struct{}, maxStreams)}
	c.sessions = sessions{now: time.Now, check: func(token string) error { return cfg.Check(token, netip.Addr{}) }, open: map[[sha256.Size]byte]session{}}
	c.ended, c.end = context.WithCancel(context.Background())
	c.overview = shared[Overview]{keep: time.Second, read: func(context.Context) (Overview, error) {
		o := cfg.Source.Overview()
		o.Last = cfg.Monitor.last()
		return o, nil
	}}
	c.workers = shared[any]{keep: 5 * time.Second, read: cfg.Source.Workers}
	c.cluster = shared[any]{keep: 5 * time.Second, read: cfg.Source.Cluster}
	c.routes()
	return c
}

// Close ends all streams.
func (c *Console) Close() { c.end() }

// ServeHTTP implements http.Handler, for all paths below Prefix.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	c.mux.ServeHTTP(w, r)
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET "+Prefix+"{$}", c.serveIndex)
	c.mux.HandleFunc("GET "+Prefix+"a/{build}/{file}", c.serveAsset)
	c.mux.HandleFunc("POST "+Prefix+"api/login", c.serveLogin)
	c.mux.HandleFunc("POST "+Prefix+"api/logout", c.serveLogout)
	c.mux.HandleFunc("GET "+Prefix+"api/session", c.serveSession)
	for name, read := range c.readings() {
		c.mux.HandleFunc("GET "+Prefix+"api/"+name, func(w http.ResponseWriter, r *http.Request) {
			if err := c.admit(r); err != nil {
				problem.Write(w, c.cfg.Logger, err)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), readTime)
			defer cancel()
			reply, err := read(ctx, r.URL.Query())
			if err != nil && c.cfg.Told != nil {
				err = c.cfg.Told(err)
			}
			if err != nil {
				problem.Write(w, c.cfg.Logger, err)
				return
			}
			writeJSON(w, reply)
		})
	}
	c.mux.HandleFunc("GET "+Prefix+"api/live", c.serveLive)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, c.cfg.Logger, problem.NotFound(r.URL.Path))
	})
}

//go:embed assets
var embedded embed.FS

// assets are the files of the page, by name, and build is the hash of them all. It is part
// of their address, so that a browser keeps them for ever.
var assets, index, build = readAssets()

func readAssets() (files map[string][]byte, index []byte, build string) {
	files = map[string][]byte{}
	all := sha256.New()
	entries, _ := fs.ReadDir(embedded, "assets") // cannot fail: it is embedded
	for _, e := range entries {
		content, _ := fs.ReadFile(embedded, path.Join("assets", e.Name()))
		fmt.Fprintf(all, "%s %d\n%s", e.Name(), len(content), content)
		files[e.Name()] = content
	}
	build = hex.EncodeToString(all.Sum(nil))[:16]
	index = bytes.ReplaceAll(files["index.tmpl"], []byte("{build}"), []byte(build))
	delete(files, "index.tmpl")
	return files, index, build
}

var types = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
}

func (c *Console) serveIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(index)
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	content, ok := assets[name]
	if !ok || r.PathValue("build") != build {
		problem.Write(w, c.cfg.Logger, problem.NotFound(r.URL.Path))
		return
	}
	w.Header().Set("Content-Type", types[strings.ToLower(path.Ext(name))])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content)
}

// shared is the last result of a reading, for all who ask within keep. One reading runs at a
// time, and it does not end with the request that began it.
type shared[T any] struct {
	keep time.Duration
	read func(context.Context) (T, error)

	mu  sync.Mutex
	now *reading[T]
}

type reading[T any] struct {
	done  chan struct{}
	until time.Time
	value T
	err   error
}

func (s *shared[T]) get(ctx context.Context) (T, error) {
	s.mu.Lock()
	r := s.now
	if r == nil || !r.until.IsZero() && time.Now().After(r.until) {
		r = &reading[T]{done: make(chan struct{})}
		s.now = r
		go func() {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
			defer cancel()
			value, err := bounded.Recover("a reading of the console", func() (T, error) { return s.read(limited) })
			s.mu.Lock()
			r.value, r.err, r.until = value, err, time.Now().Add(s.keep)
			s.mu.Unlock()
			close(r.done)
		}()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, errors.Join(leaf.ErrNotReady, ctx.Err())
	}
}
