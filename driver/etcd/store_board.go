package etcd

import (
	"context"
	"net/url"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/segment"
)

var _ segment.Board = (*Store)(nil)

// noticeValue is the value of a key notices/<tag>.
type noticeValue struct {
	formatted

	Tag      string `json:"tag"`
	Asked    int64  `json:"asked,string"`
	Regress  int64  `json:"regress,string"`
	Repaired int64  `json:"repaired,string"`
}

// answerValue is the value of a key answers/<tag>/<node>.
type answerValue struct {
	formatted

	Tag     string `json:"tag"`
	Node    string `json:"node"`
	Asked   int64  `json:"asked,string"`
	High    int64  `json:"high,string"`
	Latched bool   `json:"latched"`
}

func answerOf(a segment.Answer) answerValue {
	return answerValue{Tag: a.Tag, Node: a.Node, Asked: a.Asked, High: a.High, Latched: a.Latched}
}

// isEmpty reports whether an answer says that its node knows nothing of the tag.
func (a answerValue) isEmpty() bool { return a.High == 0 && !a.Latched }

// memberValue is the value of a key nodes/<node>, which is on a lease.
type memberValue struct {
	formatted

	Node    string `json:"node"`
	Process int64  `json:"process,string"`
	Fence   int64  `json:"fence,string"`
}

// forgottenValue is the value of the key forgotten.
type forgottenValue struct {
	formatted

	Asked int64 `json:"asked,string"`
}

func (s *Store) noticeKey(tag string) string { return s.key("notices/" + tag) }
func (s *Store) nodeKey(node string) string  { return s.key("nodes/" + node) }
func (s *Store) forgottenKey() string        { return s.key("forgotten") }

// answersOf is the folder of the answers about a tag. A slash in the name of the tag is escaped: it
// would begin the name of a node.
func (s *Store) answersOf(tag string) string { return s.key("answers/" + url.PathEscape(tag) + "/") }

func (s *Store) answerKey(tag, node string) string { return s.answersOf(tag) + node }

func parseNotices(r reply) (notices []segment.Notice, err error) {
	for _, kv := range found(r) {
		var v noticeValue
		if err := parse(string(kv.Key), kv.Value, &v); err != nil {
			return nil, err
		}
		notices = append(notices, segment.Notice{Tag: v.Tag, Asked: v.Asked, Regress: v.Regress, Repaired: v.Repaired})
	}
	return notices, nil
}

func parseAnswers(r reply) (answers []segment.Answer, err error) {
	for _, kv := range found(r) {
		var v answerValue
		if err := parse(string(kv.Key), kv.Value, &v); err != nil {
			return nil, err
		}
		answers = append(answers, segment.Answer{Tag: v.Tag, Node: v.Node, Asked: v.Asked, High: v.High, Latched: v.Latched})
	}
	return answers, nil
}

// Notices implements segment.Board.
func (s *Store) Notices(ctx context.Context) (notices []segment.Notice, err error) {
	defer s.done(&err, "read the notices of a regress")
	read, _, err := s.look(ctx, getAll(s.noticeKey("")))
	if err != nil {
		return nil, err
	}
	return parseNotices(read[0])
}

// Post implements segment.Board.
func (s *Store) Post(ctx context.Context, n segment.Notice) (err error) {
	defer s.done(&err, "post a notice of tag %q", n.Tag)
	key := s.noticeKey(n.Tag)
	for {
		read, _, err := s.look(ctx, get(key))
		if err != nil {
			return err
		}
		notices, err := parseNotices(read[0])
		if err != nil {
			return err
		}
		was := segment.NoticeOf(n.Tag, notices)
		next := noticeValue{Tag: n.Tag, Asked: max(was.Asked, n.Asked), Regress: max(was.Regress, n.Regress), Repaired: max(was.Repaired, n.Repaired)}
		done, _, err := s.write(ctx, []clientCmp{is(key, textOf(read[0]))}, []clientOp{put(key, encode(next))}, nil)
		if done || err != nil {
			return err
		}
	}
}

// Answer implements segment.Board. An answer that knows nothing is on a lease: no repair waits for it
// after segment.BoardAge.
func (s *Store) Answer(ctx context.Context, a segment.Answer) (err error) {
	defer s.done(&err, "answer about tag %q", a.Tag)
	v := answerOf(a)
	var options []clientv3.OpOption
	if v.isEmpty() {
		lease, err := s.lease(ctx)
		if err != nil {
			return err
		}
		options = append(options, clientv3.WithLease(lease))
	}
	_, _, err = s.write(ctx, nil, []clientOp{clientv3.OpPut(s.answerKey(a.Tag, a.Node), encode(v), options...)}, nil)
	return err
}

// Answers implements segment.Board.
func (s *Store) Answers(ctx context.Context, tag string) (answers []segment.Answer, err error) {
	defer s.done(&err, "read the answers about tag %q", tag)
	return s.answersIn(ctx, s.answersOf(tag))
}

// AllAnswers returns the answers about all tags.
func (s *Store) AllAnswers(ctx context.Context) (answers []segment.Answer, err error) {
	defer s.done(&err, "read the answers about all tags")
	return s.answersIn(ctx, s.key("answers/"))
}

func (s *Store) answersIn(ctx context.Context, folder string) ([]segment.Answer, error) {
	read, _, err := s.look(ctx, getAll(folder))
	if err != nil {
		return nil, err
	}
	return parseAnswers(read[0])
}

// forgetAtOnce is how many answers without a number go with a notice: etcd takes 128 writes in a
// transaction. The others go with their leases. Their questions are older than each one that follows.
const forgetAtOnce = 100

// Forget implements segment.Board.
func (s *Store) Forget(ctx context.Context, tag string, asked int64) (err error) {
	defer s.done(&err, "forget a question about tag %q", tag)
	key, last, folder := s.noticeKey(tag), s.forgottenKey(), s.answersOf(tag)
	for {
		read, revision, err := s.look(ctx, get(key), get(last), getAll(folder))
		if err != nil {
			return err
		}
		notices, err := parseNotices(read[0])
		if err != nil {
			return err
		}
		if len(notices) == 0 || notices[0] != (segment.Notice{Tag: tag, Asked: asked}) {
			return nil
		}
		before, err := parseForgotten(last, read[1])
		if err != nil {
			return err
		}
		writes := []clientOp{remove(key), put(last, encode(forgottenValue{Asked: max(before, asked)}))}
		for _, kv := range found(read[2]) {
			var a answerValue
			if err := parse(string(kv.Key), kv.Value, &a); err != nil {
				return err
			}
			if a.isEmpty() && len(writes) < forgetAtOnce {
				writes = append(writes, remove(string(kv.Key)))
			}
		}
		done, _, err := s.write(ctx, []clientCmp{is(key, textOf(read[0])), is(last, textOf(read[1])), hasNothingSince(revision, folder)}, writes, nil)
		if done || err != nil {
			return err
		}
	}
}

// Forgotten implements segment.Board.
func (s *Store) Forgotten(ctx context.Context) (asked int64, err error) {
	defer s.done(&err, "read the last question that was forgotten")
	key := s.forgottenKey()
	read, _, err := s.look(ctx, get(key))
	if err != nil {
		return 0, err
	}
	return parseForgotten(key, read[0])
}

func parseForgotten(key string, r reply) (asked int64, err error) {
	var v forgottenValue
	if text := textOf(r); text != "" {
		err = parse(key, []byte(text), &v)
	}
	return v.Asked, err
}

// entered are the leases of the nodes that this process has entered, by node.
type entered struct {
	mu     sync.Mutex
	leases map[string]clientv3.LeaseID
}

// replace notes a lease and returns the one before, 0 if there was none.
func (e *entered) replace(node string, lease clientv3.LeaseID) (before clientv3.LeaseID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leases == nil {
		e.leases = map[string]clientv3.LeaseID{}
	}
	before = e.leases[node]
	e.leases[node] = lease
	return before
}

// Enter implements segment.Board. Each call takes a lease of its own, as an announcement does, and ends
// the lease of the call before, which would last for a day.
func (s *Store) Enter(ctx context.Context, m segment.Member) (err error) {
	defer s.done(&err, "note that node %s is there", m.Node)
	lease, err := s.lease(ctx)
	if err != nil {
		return err
	}
	text := encode(memberValue{Node: m.Node, Process: m.Process, Fence: m.Fence})
	if _, _, err := s.write(ctx, nil, []clientOp{clientv3.OpPut(s.nodeKey(m.Node), text, clientv3.WithLease(lease))}, nil); err != nil {
		return err
	}
	if before := s.entered.replace(m.Node, lease); before != 0 {
		_ = s.do(ctx, func(client *clientv3.Client) error { // the node has entered all the same
			_, err := client.Revoke(ctx, before)
			return err
		})
	}
	return nil
}

// Leave implements segment.Board.
func (s *Store) Leave(ctx context.Context, node string) (err error) {
	defer s.done(&err, "note that node %s is gone", node)
	_, _, err = s.write(ctx, nil, []clientOp{remove(s.nodeKey(node))}, nil)
	return err
}

// Nodes implements segment.Board.
func (s *Store) Nodes(ctx context.Context) (nodes []segment.Member, err error) {
	defer s.done(&err, "read which nodes are there")
	read, _, err := s.look(ctx, getAll(s.nodeKey("")))
	if err != nil {
		return nil, err
	}
	for _, kv := range found(read[0]) {
		var v memberValue
		if err := parse(string(kv.Key), kv.Value, &v); err != nil {
			return nil, err
		}
		nodes = append(nodes, segment.Member{Node: v.Node, Process: v.Process, Fence: v.Fence})
	}
	return nodes, nil
}

// lease takes a lease for segment.BoardAge.
func (s *Store) lease(ctx context.Context) (id clientv3.LeaseID, err error) {
	err = s.do(ctx, func(client *clientv3.Client) error {
		granted, err := client.Grant(ctx, int64(segment.BoardAge/time.Second))
		if err == nil {
			id = granted.ID
		}
		return err
	})
	return id, err
}
