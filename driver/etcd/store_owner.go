package etcd

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// ownerValue is the value of the key owner.
type ownerValue struct {
	formatted

	Cluster string        `json:"cluster,omitempty"` // its ID; "": not made yet
	Binding *bindingValue `json:"binding,omitempty"` // nil: not bound yet
}

type bindingValue struct {
	Store string `json:"store"`
	Rule  string `json:"rule"`
}

// owner says whose the store is. Every transaction compares the key owner: a node takes no range from
// a store that became another cluster's (rule V), or a part of another tag rule (rule K).
type owner struct {
	mu      sync.Mutex
	text    string           // of the key, as it was seen last; "": it was absent
	cluster string           // whose ranges this node has taken; "": not known yet
	binding *segment.Binding // nil: not bound yet
}

// seen returns what transactions compare.
func (o *owner) seen() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}

func (o *owner) known() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cluster
}

// heed compares the text that the key has now with what this node knows, and remembers it unless it
// refuses it. changed says that it is another text than was seen last. A key without an ID is not
// another cluster's: an administrator of etcd has deleted it, and the next Bind writes it again.
func (o *owner) heed(key, text string) (changed bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text == o.text {
		return false, nil
	}
	v, err := parseOwner(key, text)
	if err != nil {
		return false, err
	}
	if err := o.checkLocked(v); err != nil {
		return false, err
	}
	if o.binding != nil {
		if err := checkBinding(*o.binding, v.Binding); err != nil {
			return false, err
		}
	}
	o.text, o.cluster = text, cmp.Or(o.cluster, v.Cluster)
	return true, nil
}

func (o *owner) checkLocked(v ownerValue) error {
	if o.cluster != "" && v.Cluster != "" && v.Cluster != o.cluster {
		return &segment.ClusterError{Own: o.cluster, Found: v.Cluster}
	}
	return nil
}

func (o *owner) check(v ownerValue) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.checkLocked(v)
}

// settle remembers what the key holds now, and the binding of this node if it has one.
func (o *owner) settle(text string, v ownerValue, b *segment.Binding) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text, o.cluster = text, cmp.Or(o.cluster, v.Cluster)
	if b != nil {
		o.binding = b
	}
}

func parseOwner(key, text string) (v ownerValue, err error) {
	if text == "" {
		return v, nil
	}
	return v, parse(key, []byte(text), &v)
}

// checkBinding returns segment.ErrRule if found is another binding. The only store of a node needs no
// record.
func checkBinding(own segment.Binding, found *bindingValue) error {
	switch {
	case found == nil && own.Rule != "":
		return fmt.Errorf("%w: no tag rule is recorded in this etcd, and its rows may be old copies of rows in another store; Store.RecordRule records one", segment.ErrSchema)
	case found != nil && !own.Same(segment.Binding{Store: found.Store, Rule: found.Rule}):
		return fmt.Errorf("%w: the store belongs to %s, this node takes it for %s", segment.ErrRule, describe(found.Store, found.Rule), describe(own.Store, own.Rule))
	}
	return nil
}

func describe(store, rule string) string {
	if rule == "" {
		return "the only store"
	}
	return fmt.Sprintf("store %q of rule %q", store, rule)
}

// Bind implements segment.Store. It records the ID of the cluster, and a binding without a rule.
func (s *Store) Bind(ctx context.Context, b segment.Binding) (err error) {
	defer s.done(&err, "bind %s", s.cfg.Prefix)
	return s.own(ctx, &b, func(v *ownerValue) error {
		if v.Binding == nil && b.Rule == "" {
			v.Binding = &bindingValue{Store: b.Store}
		}
		v.Cluster = cmp.Or(v.Cluster, s.newCluster())
		return checkBinding(b, v.Binding)
	})
}

// Verify is Bind without writing anything.
func (s *Store) Verify(ctx context.Context, b segment.Binding) (err error) {
	defer s.done(&err, "bind %s", s.cfg.Prefix)
	return s.own(ctx, &b, func(v *ownerValue) error { return checkBinding(b, v.Binding) })
}

// RecordRule makes the store a part of a tag rule, once: Bind records no rule. Error:
// leaf.ErrConflict if the store has another binding.
func (s *Store) RecordRule(ctx context.Context, b segment.Binding) (err error) {
	defer s.done(&err, "record a tag rule in %s", s.cfg.Prefix)
	return s.own(ctx, nil, func(v *ownerValue) error {
		record := bindingValue{b.Store, b.Rule}
		if v.Binding != nil && *v.Binding != record {
			return fmt.Errorf("%w: the store is bound already", leaf.ErrConflict)
		}
		v.Binding, v.Cluster = &record, cmp.Or(v.Cluster, s.newCluster())
		return nil
	})
}

// Expect says which cluster this node has taken ranges from before, in an earlier process. Call it
// before any other method. The error is a *segment.ClusterError if the Store has read another ID.
func (s *Store) Expect(id string) error {
	if err := s.owner.check(ownerValue{Cluster: id}); err != nil {
		return &segment.ClusterError{Own: id, Found: s.KnownCluster()}
	}
	s.owner.settle("", ownerValue{Cluster: id}, nil)
	return nil
}

// KnownCluster returns the ID that this Store compares, "" if it knows none yet.
func (s *Store) KnownCluster() string { return s.owner.known() }

// ClusterID returns the ID of the cluster that uses this store: 32 hex digits by chance, made by the
// first call of any node. Every error may be retried.
func (s *Store) ClusterID(ctx context.Context) (id string, err error) {
	if id := s.KnownCluster(); id != "" {
		return id, nil
	}
	defer s.done(&err, "read the cluster's ID")
	err = s.own(ctx, nil, func(v *ownerValue) error {
		v.Cluster = cmp.Or(v.Cluster, s.newCluster())
		return nil
	})
	return s.KnownCluster(), err
}

// newCluster is the ID for a store without one. It is the one that this node knows, if it knows one:
// the key was deleted under a node that runs, and the next node that starts must not make another ID.
func (s *Store) newCluster() string {
	if known := s.KnownCluster(); known != "" {
		return known
	}
	return segment.NewClusterID()
}

// own reads the key owner, and writes what f makes of it, unless f refuses. b is the binding that this
// node has then, nil for none.
func (s *Store) own(ctx context.Context, b *segment.Binding, f func(v *ownerValue) error) error {
	key := s.ownerKey()
	for {
		r, err := s.commit(ctx, nil, []clientOp{get(key)}, nil)
		if err != nil {
			return err
		}
		text := textOf(r.Responses[0])
		v, err := parseOwner(key, text)
		if err != nil {
			return err
		}
		if err := s.owner.check(v); err != nil { // before f: nothing is recorded in the store of another cluster
			return err
		}
		next := v
		if err := f(&next); err != nil {
			return err
		}
		if next != v {
			written := encode(next)
			r, err := s.commit(ctx, []clientCmp{is(key, text)}, []clientOp{put(key, written)}, []clientOp{get(key)})
			if err != nil {
				return err
			}
			if !r.Succeeded { // another node was faster
				continue
			}
			text = written
		}
		s.owner.settle(text, next, b)
		return nil
	}
}

// ForgetAgreed returns the command that removes what Agree has recorded under name; all: under each name that begins so.
func (s *Store) ForgetAgreed(name string, all bool) string {
	keys := shellWord(s.agreedKey(name))
	if all {
		keys = "--prefix " + keys
	}
	return "etcdctl del " + keys
}

func (s *Store) agreedKey(name string) string { return s.key("agreed/" + name) }

// Agree records text under name, unless something is recorded there, and returns what is: all nodes of
// the store get the same answer. Every error may be retried.
func (s *Store) Agree(ctx context.Context, name, text string) (recorded string, err error) {
	defer s.done(&err, "agree on %s", name)
	key := s.agreedKey(name)
	done, answers, err := s.write(ctx, []clientCmp{isAbsent(key)}, []clientOp{put(key, text)}, []clientOp{get(key)})
	if err != nil {
		return "", err
	}
	if done {
		return text, nil
	}
	return textOf(answers[0]), nil
}
