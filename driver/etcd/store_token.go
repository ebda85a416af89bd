package etcd

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/internal/auth"
)

var _ auth.Store = (*Store)(nil)

// tokenValue is the value of a key tokens/<name>.
type tokenValue struct {
	formatted

	Digest  string    `json:"digest"`
	Roles   []string  `json:"roles"`
	Created time.Time `json:"created"`
}

func (s *Store) tokenKey(name string) string { return s.key("tokens/" + name) }

// NamedTokens implements auth.Store. A value that cannot be read opens nothing, and hides no other.
func (s *Store) NamedTokens(ctx context.Context) (tokens []auth.Token, err error) {
	defer s.done(&err, "read named tokens")
	folder := s.tokenKey("")
	read, _, err := s.look(ctx, getAll(folder))
	if err != nil {
		return nil, err
	}
	for _, kv := range found(read[0]) {
		t, err := parseToken(strings.TrimPrefix(string(kv.Key), folder), string(kv.Key), kv.Value)
		if err != nil {
			s.log().Warn("a token in etcd is left out, because this version of Leaf did not write it", "key", string(kv.Key))
			continue
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

func parseToken(name, key string, value []byte) (t auth.Token, err error) {
	var v tokenValue
	if err := parse(key, value, &v); err != nil {
		return t, err
	}
	roles, err := auth.ParseRoles(v.Roles)
	if err != nil {
		return t, err
	}
	t = auth.Token{Name: name, Digest: v.Digest, Roles: roles, Created: v.Created.UTC()}
	return t, t.Validate()
}

// CreateToken implements auth.Store.
func (s *Store) CreateToken(ctx context.Context, t auth.Token) (err error) {
	if err := t.Validate(); err != nil {
		return err
	}
	defer s.done(&err, "create token")
	read, _, err := s.look(ctx, clientv3.OpGet(s.tokenKey(""), clientv3.WithPrefix(), clientv3.WithCountOnly()))
	if err != nil {
		return err
	}
	if read[0].GetResponseRange().GetCount() >= auth.MaxTokens {
		return auth.ErrTooManyTokens()
	}
	key := s.tokenKey(t.Name)
	done, _, err := s.write(ctx, []clientCmp{isAbsent(key)},
		[]clientOp{put(key, encode(tokenValue{Digest: t.Digest, Roles: t.Roles.Words(), Created: t.Created.UTC().Truncate(time.Second)}))}, nil)
	if err == nil && !done {
		return auth.ErrTokenExists(t.Name)
	}
	return err
}

// RevokeToken implements auth.Store.
func (s *Store) RevokeToken(ctx context.Context, name string) (err error) {
	if err := auth.CheckName(name); err != nil {
		return err
	}
	defer s.done(&err, "revoke token")
	key := s.tokenKey(name)
	done, _, err := s.write(ctx, []clientCmp{exists(key)}, []clientOp{remove(key)}, nil)
	if err == nil && !done {
		return auth.ErrNoToken(name)
	}
	return err
}
