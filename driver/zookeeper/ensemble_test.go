package zookeeper_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// ensemble is a ZooKeeper in memory. Its servers are behind the leader, each by another number of writes.
type ensemble struct {
	mu       sync.Mutex
	rng      *rand.Rand
	zxid     int64
	past     []tree              // what servers show; the last one is the leader's
	sessions map[int64]time.Time // when each was last heard of
	session  int64               // the last one
}

// tree is all nodes by path. One that is in the past does not change.
type tree map[string]znode

type znode struct {
	data []byte
	stat zk.Stat
	made int // how many children it ever had
}

func newEnsemble(seed uint64) *ensemble {
	return &ensemble{rng: rand.New(rand.NewPCG(seed, 1)), past: []tree{{"/": {}}}, sessions: map[int64]time.Time{}}
}

func (e *ensemble) leader() tree { return e.past[len(e.past)-1] }

// write does all of ops or nothing. The caller has the lock, here and in expire and connect.
func (e *ensemble) write(session int64, ops ...any) (results []zk.MultiResponse, err error) {
	e.zxid++
	next := maps.Clone(e.leader())
	for _, op := range ops {
		r, err := e.do(next, op, session)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	e.past = append(e.past, next)
	return results, nil
}

func (e *ensemble) do(t tree, op any, session int64) (r zk.MultiResponse, err error) {
	now := time.Now().UnixMilli()
	switch op := op.(type) {
	case *zk.CheckVersionRequest:
		_, err = t.expect(op.Path, op.Version)
	case *zk.SetDataRequest:
		n, err := t.expect(op.Path, op.Version)
		if err != nil {
			return r, err
		}
		n.data, n.stat.Mzxid, n.stat.Mtime, n.stat.Version = op.Data, e.zxid, now, n.stat.Version+1
		t[op.Path], r.Stat = n, &n.stat
	case *zk.DeleteRequest:
		if _, err = t.expect(op.Path, op.Version); err == nil && len(t.children(op.Path)) > 0 {
			err = zk.ErrNotEmpty
		}
		if err == nil {
			t.remove(op.Path)
		}
	case *zk.CreateRequest:
		p, folder := op.Path, path.Dir(op.Path)
		above, ok := t[folder]
		if op.Flags&zk.FlagSequence != 0 {
			p = fmt.Sprintf("%s%010d", p, above.made)
		}
		if _, taken := t[p]; taken || !ok {
			return r, map[bool]error{true: zk.ErrNodeExists, false: zk.ErrNoNode}[taken]
		}
		above.made++
		above.stat.NumChildren++
		n := znode{data: op.Data, stat: zk.Stat{Czxid: e.zxid, Mzxid: e.zxid, Ctime: now, Mtime: now}}
		if op.Flags&zk.FlagEphemeral != 0 {
			n.stat.EphemeralOwner = session
		}
		t[folder], t[p], r.String = above, n, p
	}
	return r, err
}

func (t tree) expect(p string, version int32) (znode, error) {
	n, ok := t[p]
	switch {
	case !ok:
		return n, zk.ErrNoNode
	case version >= 0 && n.stat.Version != version:
		return n, zk.ErrBadVersion
	}
	return n, nil
}

func (t tree) children(p string) (names []string) {
	for q := range t {
		if q != "/" && path.Dir(q) == p {
			names = append(names, path.Base(q))
		}
	}
	slices.Sort(names)
	return names
}

// remove deletes p and all below it.
func (t tree) remove(p string) {
	if _, ok := t[p]; !ok {
		return
	}
	above := t[path.Dir(p)]
	above.stat.NumChildren--
	t[path.Dir(p)] = above
	maps.DeleteFunc(t, func(q string, _ znode) bool { return q == p || strings.HasPrefix(q, p+"/") })
}

// removeEphemeral deletes the nodes of one session, or of all for 0.
func (t tree) removeEphemeral(session int64) {
	for p, n := range t {
		if owner := n.stat.EphemeralOwner; owner != 0 && (session == 0 || owner == session) {
			t.remove(p)
		}
	}
}

// expire ends the sessions that were not heard of for so long.
func (e *ensemble) expire(silent time.Duration) {
	for id, heard := range e.sessions {
		if time.Since(heard) < silent {
			continue
		}
		delete(e.sessions, id)
		next := maps.Clone(e.leader())
		next.removeEphemeral(id)
		e.zxid++
		e.past = append(e.past, next)
	}
}

// become puts another tree in place of all, and ends all sessions.
func (e *ensemble) become(t tree) {
	t.removeEphemeral(0)
	e.past = []tree{t}
	clear(e.sessions)
}

// way is a client of the ensemble, with one session after the other.
type way struct {
	e       *ensemble
	pass    func() error // holds the process up, or says why it gets no answer
	fate    func() (request, reply bool, delay time.Duration)
	session int64
	server  int // which tree it shows
}

// connect begins a session, perhaps at a server that is behind, if there is none.
func (w *way) connect() error {
	_, alive := w.e.sessions[w.session]
	ended := !alive && w.session != 0
	if !alive {
		w.e.session++
		w.session, w.server = w.e.session, len(w.e.past)-1-w.e.rng.IntN(min(len(w.e.past), 10))
	}
	w.e.sessions[w.session] = time.Now()
	if ended {
		return zk.ErrSessionExpired
	}
	return nil
}

// call makes a request, whose way there or back may be cut off.
func (w *way) call(f func() error) error {
	if err := w.pass(); err != nil {
		return err
	}
	sent := w.SessionID()
	request, reply, delay := w.fate()
	time.Sleep(delay)
	if !request {
		return zk.ErrConnectionClosed
	}
	w.e.mu.Lock()
	err := w.connect()
	if err == nil && sent != 0 && sent != w.session {
		err = zk.ErrSessionExpired
	}
	if err == nil {
		err = f()
	}
	w.e.mu.Unlock()
	time.Sleep(delay)
	if gone := w.pass(); gone != nil || !reply {
		return zk.ErrConnectionClosed
	}
	return err
}

// read shows a node of the server, which may catch up a bit before.
func (w *way) read(p string, f func(t tree, n znode)) error {
	return w.call(func() error {
		w.server = min(w.server, len(w.e.past)-1)
		w.server += w.e.rng.IntN(len(w.e.past) - w.server)
		n, ok := w.e.past[w.server][p]
		if !ok {
			return zk.ErrNoNode
		}
		f(w.e.past[w.server], n)
		return nil
	})
}

func (w *way) Get(p string) (data []byte, stat *zk.Stat, err error) {
	err = w.read(p, func(_ tree, n znode) { data, stat = n.data, &n.stat })
	return data, stat, err
}

func (w *way) Children(p string) (names []string, stat *zk.Stat, err error) {
	err = w.read(p, func(t tree, n znode) { names, stat = t.children(p), &n.stat })
	return names, stat, err
}

func (w *way) Sync(p string) (string, error) {
	return p, w.call(func() error { w.server = len(w.e.past) - 1; return nil })
}

func (w *way) Multi(ops ...any) (results []zk.MultiResponse, err error) {
	err = w.call(func() (err error) {
		if results, err = w.e.write(w.session, ops...); err == nil {
			w.server = len(w.e.past) - 1
		}
		return err
	})
	return results, err
}

func (w *way) Create(p string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	results, err := w.Multi(&zk.CreateRequest{Path: p, Data: data, Acl: acl, Flags: flags})
	if err != nil {
		return "", err
	}
	return results[0].String, nil
}

func (w *way) SessionID() int64 {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.session
}

// Close leaves the session to its end.
func (*way) Close() {}
