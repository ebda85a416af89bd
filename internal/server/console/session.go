package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	sessionTime = 12 * time.Hour
	maxSessions = 1000
)

// sessions are the browsers that have shown a token. They are known by the hash of their
// cookie, so that memory that leaks does not open a session.
type sessions struct {
	now   func() time.Time
	check func(token string) error

	mu   sync.Mutex
	open map[[sha256.Size]byte]session
}

type session struct {
	token string // is checked at each request: a session ends with its token
	until time.Time
}

// begin returns the secret of a new session. The oldest one ends when there are too many.
func (s *sessions) begin(token string) (secret string, until time.Time) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	secret = base64.RawURLEncoding.EncodeToString(raw)
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest, at := [sha256.Size]byte{}, time.Time{}
	for key, o := range s.open {
		if !now.Before(o.until) {
			delete(s.open, key)
		} else if at.IsZero() || o.until.Before(at) {
			oldest, at = key, o.until
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
	until = now.Add(sessionTime)
	s.open[sha256.Sum256([]byte(secret))] = session{token, until}
	return secret, until
}

// valid reports whether the secret is that of a session whose token is still accepted.
func (s *sessions) valid(secret string) bool {
	_, ok := s.token(secret)
	return ok
}

// token returns the token of a valid session.
func (s *sessions) token(secret string) (token string, ok bool) {
	key := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	o, ok := s.open[key]
	s.mu.Unlock()
	if !ok {
		return "", false
	}
	if s.now().Before(o.until) && s.check(o.token) == nil {
		return o.token, true
	}
	s.end(secret)
	return "", false
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(secret)))
}

// cookieName has the port of the request, because browsers send a cookie to every port of a
// host. Over TLS the prefix __Host- keeps other hosts of the domain from setting it.
func (c *Console) cookieName(r *http.Request) string {
	name := "leaf-console"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if c.cfg.Secure {
		name = "__Host-" + name
	}
	return name
}

func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, secret string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: c.cookieName(r), Value: secret, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteStrictMode,
	})
}

func (c *Console) secretOf(r *http.Request) string {
	found, err := r.Cookie(c.cookieName(r))
	if err != nil {
		return ""
	}
	return found.Value
}
