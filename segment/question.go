package segment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// question posts a question. Its number is above the number of each question that the board
// holds, has an answer to, or has forgotten. So a node that answers this question, or a later
// one, has read what is on the board now. If the time is larger, the number is the time: then
// it is not used again when the database loses commits. asked is the number of the last
// question on the board.
func (r *repair) question(ctx context.Context, asked int64) error {
	all, err := r.allAnswers(ctx)
	if err != nil {
		return err
	}
	for _, x := range all {
		asked = max(asked, x.Asked)
	}
	forgotten, err := bounded.Do(ctx, &r.shard.calls, r.alloc.cfg.LoadTimeout, r.board.Forgotten)
	if err != nil {
		return err
	}
	asked = max(asked, forgotten)
	if asked >= MaxMaxID {
		return fmt.Errorf("%w: tag %q has question %d in leaf_repair or leaf_repair_node, must be below %d; no node wrote that, correct the row",
			leaf.ErrConflict, r.tag, asked, int64(MaxMaxID))
	}
	r.asked = max(asked+1, r.alloc.rt.Now().UnixNano())
	return r.post(ctx, Notice{Tag: r.tag, Asked: r.asked})
}

// forget takes the question off the board when nothing comes of it: otherwise each name that
// is typed in a plan stays there. It is called after this node has listened to the answers,
// for longer than any other repair whose question has got the number of this one does. A
// question that stays after a failure or a break does no harm.
func (r *repair) forget(ctx context.Context) {
	if r.board != nil {
		_ = r.shard.post(ctx, func(ctx context.Context) error { return r.board.Forget(ctx, r.tag, r.asked) })
	}
}

// confirm waits until the nodes have heeded a repair to the number, which is posted. again:
// one is still latched, or holds more and did not say so before the row moved: what it
// holds may be from before the loss. A node that did say may have loaded since.
func (r *repair) confirm(ctx context.Context, to int64) (again bool, err error) {
	n, err := r.notice(ctx)
	if err == nil {
		err = r.question(ctx, n.Asked)
	}
	if err != nil {
		return false, storeError(err)
	}
	known, mute := r.silent, r.mute
	answers, err := r.answers(ctx, to)
	if err != nil {
		return false, storeError(err)
	}
	for _, x := range answers {
		again = again || x.Latched && x.Asked >= r.asked || x.High > to && !slices.Contains(r.heard, x.Node)
	}
	late := slices.DeleteFunc(r.silent, func(node string) bool { return slices.Contains(known, node) })
	r.plan.Untold = r.mute
	r.silent, r.mute = known, mute
	if len(late) > 0 && !again {
		r.silent = late
		return false, r.silence(fmt.Sprintf("max_id of tag %q is %d, but these nodes may still issue numbers below it. Repeat the command", r.tag, r.plan.First))
	}
	return again, nil
}

// notice returns the tag's notice, one without numbers if there is none.
func (r *repair) notice(ctx context.Context) (Notice, error) {
	all, err := bounded.Do(ctx, &r.shard.calls, r.alloc.cfg.LoadTimeout, r.board.Notices)
	return NoticeOf(r.tag, all), err
}

// answers waits until all nodes have answered the question, with at least the number to.
// It notes in r.mute which have not after a while, also those that left meanwhile, and in
// r.silent those of them whose ranges are unknown: they are not under the
// cluster fence that this repair has read. Before the row moves, to is 0. Then it listens
// for as long as a node needs to enter again, because the list may have been lost with the
// commits.
func (r *repair) answers(ctx context.Context, to int64) ([]Answer, error) {
	a, calls, timeout := r.alloc, &r.shard.calls, r.alloc.cfg.LoadTimeout
	seen := map[string]Member{}
	for began := a.rt.Now(); ; {
		nodes, err := bounded.Do(ctx, calls, timeout, r.board.Nodes)
		if err != nil {
			return nil, err
		}
		all, err := r.allAnswers(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range nodes {
			seen[m.Node] = m
		}
		r.mute = slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(node string) bool {
			return r.shard.is(seen[node]) || slices.ContainsFunc(all, func(x Answer) bool { return x.Node == node && x.Asked >= r.asked && x.High >= to })
		})
		r.silent = slices.DeleteFunc(slices.Clone(r.mute), func(node string) bool { return r.fence != 0 && seen[node].Fence == r.fence })
		waited := a.rt.Now().Sub(began)
		if len(r.mute) == 0 && (to > 0 || waited >= listenFor) || waited >= patience {
			return all, nil
		}
		if err := a.rt.Wait(ctx, nil, answerPause); err != nil {
			return nil, err
		}
	}
}

// allAnswers returns the answers of the other nodes. What this node holds is read from its own fence.
func (r *repair) allAnswers(ctx context.Context) ([]Answer, error) {
	all, err := bounded.Do(ctx, &r.shard.calls, r.alloc.cfg.LoadTimeout, func(ctx context.Context) ([]Answer, error) {
		return r.board.Answers(ctx, r.tag)
	})
	return slices.DeleteFunc(all, func(x Answer) bool { return x.Node == r.shard.boardName() }), err
}
