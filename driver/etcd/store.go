package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/segment"
)

// Store is a segment.Store, segment.Catalog and segment.Board, and keeps limits, the audit log and
// named tokens. Use NewStore, and Close at the end. All methods are safe for concurrent use.
//
// Every write is one transaction. It compares the text of each key from which the new value was
// made, and of the key owner. A write is sent again only after etcd has answered that the comparison
// failed, so that nothing was written. After any other error the outcome is unknown.
//
// The texts are compared, and not the revisions: etcd that was restored from a backup can come to a
// revision that this process remembers, with another row. Equal text is the same row.
type Store struct {
	*conn

	owner    owner
	believed believed
	entered  entered
}

var (
	_ segment.Store   = (*Store)(nil)
	_ segment.Catalog = (*Store)(nil)
)

// NewStore returns a Store. It does not connect, and does not use cfg.Lease. The error is
// leaf.ErrBadRequest and names the field.
func NewStore(cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Store{conn: newConn(cfg)}, nil
}

func (s *Store) key(name string) string   { return s.cfg.Prefix + "/" + name }
func (s *Store) ownerKey() string         { return s.key("owner") }
func (s *Store) rowKey(tag string) string { return s.key("rows/" + tag) }

func get(key string) clientv3.Op       { return clientv3.OpGet(key) }
func getAll(folder string) clientv3.Op { return clientv3.OpGet(folder, clientv3.WithPrefix()) }
func put(key, text string) clientv3.Op { return clientv3.OpPut(key, text) }
func remove(key string) clientv3.Op    { return clientv3.OpDelete(key) }
func exists(key string) clientv3.Cmp   { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }

func isAbsent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// Names of the client library's types that each call needs.
type (
	clientCmp = clientv3.Cmp
	clientOp  = clientv3.Op
	reply     = *etcdserverpb.ResponseOp
)

func found(r reply) []*mvccpb.KeyValue { return r.GetResponseRange().Kvs }

// hasNothingSince is the condition that no key of a folder was written after a revision. It does not
// notice deletions.
func hasNothingSince(revision int64, folder string) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(folder), "<", revision+1).WithPrefix()
}

// is is the condition that a key has exactly this text, and with no text that it is absent.
func is(key, text string) clientv3.Cmp {
	if text == "" {
		return isAbsent(key)
	}
	return clientv3.Compare(clientv3.Value(key), "=", text)
}

// textOf returns the text of the one key that was asked for, "" if it is absent. A value without a byte
// becomes a text that no parser takes: it must not pass for an absent key.
func textOf(r reply) string {
	for _, kv := range found(r) {
		return cmp.Or(string(kv.Value), `""`)
	}
	return ""
}

// look reads at one moment, and returns the answers and the revision of that moment. It fails if the
// store is not this node's.
func (s *Store) look(ctx context.Context, reads ...clientv3.Op) (answers []reply, revision int64, err error) {
	r, err := s.commit(ctx, nil, append([]clientv3.Op{get(s.ownerKey())}, reads...), nil)
	if err != nil {
		return nil, 0, err
	}
	if _, err := s.owner.heed(s.ownerKey(), textOf(r.Responses[0])); err != nil {
		return nil, 0, err
	}
	return r.Responses[1:], r.Header.Revision, nil
}

// write carries out writes if all conditions hold and the store is this node's. If not, nothing is
// written, and it returns the answers to reads.
func (s *Store) write(ctx context.Context, conditions []clientv3.Cmp, writes, reads []clientv3.Op) (done bool, answers []reply, err error) {
	for {
		conditions := append([]clientv3.Cmp{is(s.ownerKey(), s.owner.seen())}, conditions...)
		r, err := s.commit(ctx, conditions, writes, append([]clientv3.Op{get(s.ownerKey())}, reads...))
		if err != nil {
			return false, nil, err
		}
		if r.Succeeded {
			return true, nil, nil
		}
		changed, err := s.owner.heed(s.ownerKey(), textOf(r.Responses[0]))
		if err != nil {
			return false, nil, err
		}
		if !changed { // another condition has failed
			return false, r.Responses[1:], nil
		}
	}
}

// done says in err which step has failed, and what an administrator of etcd does about a refusal. It
// is meant to be deferred.
func (s *Store) done(err *error, step string, args ...any) {
	if *err == nil {
		return
	}
	*err = fmt.Errorf("%s: %w", fmt.Sprintf(step, args...), s.refused(*err))
}

func (s *Store) refused(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: etcd user %q lacks a right (%w); an administrator of etcd grants it to a role of the user: etcdctl role grant-permission ROLE --prefix=true readwrite %s",
			segment.ErrDenied, s.cfg.Username, err, shellWord(s.cfg.Prefix+"/"))
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: etcd does not let user %q in (%w); correct the user or the password in the URL of the store", segment.ErrDenied, s.cfg.Username, err)
	}
	return err
}

// believed are the texts of rows that this Store wrote last. A load begins with them, which saves a
// round trip; the transaction shows whether they are right.
type believed struct {
	mu    sync.Mutex
	texts map[string]string // by tag
}

func (b *believed) of(tag string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.texts[tag]
}

// note remembers a text. An empty one forgets the tag.
func (b *believed) note(tag, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == "" {
		delete(b.texts, tag)
		return
	}
	if b.texts == nil {
		b.texts = map[string]string{}
	}
	b.texts[tag] = text
}

func (s *Store) log() *slog.Logger {
	if s.cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.cfg.Logger
}
