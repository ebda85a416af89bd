package segment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// ErrSilentNodes says that nodes which take ranges from the tag's database do not answer, so
// that the highest number in use is not known.
var ErrSilentNodes = errors.New("segment: nodes do not answer")

const (
	answerPause = 200 * time.Millisecond // between two looks for answers
	patience    = 5 * time.Second        // how long a node may take to answer
	mostRounds  = 3                      // of a repair
)

// Mark returns what this node's fence knows of a tag; the zero Mark if nothing.
func (a *Allocator) Mark(tag string) fence.Mark { return a.fence.Mark(tag) }

// Repair makes every node go on above the highest number in use, and releases the tag
// where it is latched. It finds that number: it asks every node that takes ranges from
// the tag's database, and takes the row and the cluster fence into account. Nothing at
// or below the number is issued afterwards by any node that it reaches; ranges in memory
// that start there are dropped. The others are RepairPlan.Untold: their ranges are in the
// cluster fence, or above leaves them out. Call it on any one node. It may be repeated. It
// returns the new max_id.
//
// With above other than 0 the number is at least above, and nodes that do not answer are
// left out: no number above it may ever have been issued by one of those. They heed the
// repair before they load again. Without a Board, or without its tables, Repair reaches
// this node only and needs above; it is then called on every node with the same number.
//
// Errors: leaf.ErrBadRequest; leaf.ErrConflict if above lies below what is known, or is
// missing where it is needed; ErrSilentNodes with leaf.ErrNotReady, naming them;
// ErrSchema with leaf.ErrNotReady if the board's tables are missing; leaf.ErrOverflow;
// leaf.ErrUnknownTag, also for a tag that was released and has no row; leaf.ErrNotReady
// if the store or the cluster fence does not answer, after which the tag may be released
// on some nodes: repeat it.
func (a *Allocator) Repair(ctx context.Context, tag string, above int64) (int64, error) {
	plan, err := a.RepairByPlan(ctx, tag, above)
	return plan.First, err
}

// RepairByPlan is Repair that returns what it went by.
func (a *Allocator) RepairByPlan(ctx context.Context, tag string, above int64) (RepairPlan, error) {
	r, err := a.newRepair(ctx, tag, above)
	if err != nil {
		return RepairPlan{}, err
	}
	for range mostRounds {
		if err := r.ask(ctx); err != nil {
			return RepairPlan{}, err
		}
		if err := r.decide(); err != nil {
			r.forget(ctx)
			return RepairPlan{}, err
		}
		again, err := r.move(ctx)
		if !again {
			return r.plan, err
		}
	}
	return RepairPlan{}, fmt.Errorf("%w: tag %q latches again while it is being repaired; run the command again", leaf.ErrConflict, tag)
}

func (a *Allocator) newRepair(ctx context.Context, tag string, above int64) (*repair, error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return nil, err
	}
	if above < 0 || above > MaxMaxID {
		return nil, leaf.BadField("above", above, fmt.Sprintf("must be 0 to %d", int64(MaxMaxID)))
	}
	if err := a.Bound(ctx, tag); err != nil {
		return nil, err
	}
	s := a.shards[a.router.Route(tag)]
	r := &repair{alloc: a, shard: s, tag: tag, above: above, board: s.watcher.board}
	if r.board == nil {
		r.alone = "the database does not let nodes reach one another"
	}
	return r, nil
}

// repair is one call of Repair.
type repair struct {
	alloc *Allocator
	shard *shard
	tag   string
	above int64
	board Board  // nil: only this node is reached
	alone string // why board is nil

	began   fence.Look // from before anything was asked
	asked   int64      // the question
	high    int64      // the highest end that is known
	holder  string     // where high is from, for people
	latched bool       // on some node

	// Where the last repair moved the row. The same command again, with a lower number, is
	// no mistake unless it speaks for nodes that are silent now.
	repaired int64

	silent []string // nodes that do not answer, but for those whose ranges are all in the cluster fence
	mute   []string // all nodes that do not answer
	heard  []string // nodes that said before the row moved what they hold
	space  string   // incarnation of the cluster fence
	fence  int64    // its number, if it holds the tag's ranges of every node that is under it
	plan   RepairPlan

	options Options // of the row
}

// ask finds the highest number in use. It changes nothing but the question on the board,
// which forget removes.
func (r *repair) ask(ctx context.Context) error {
	a := r.alloc
	r.began = a.fence.Look()
	mark := a.say(r.tag)
	r.high, r.latched, r.holder, r.fence = mark.High, mark.Latched, "this node holds", 0
	r.plan = RepairPlan{Nodes: []RepairNode{{Node: a.cfg.NodeID, End: mark.High, State: markState(mark.Latched)}}}
	row, err := r.shard.lookup(ctx, r.tag)
	missing := errors.Is(err, leaf.ErrUnknownTag)
	if err != nil && !missing {
		return storeError(err)
	}
	r.plan.Row, r.plan.NoRow, r.options = row.MaxID, missing, row.Options
	if a.fence.HasCluster() {
		e, ok, space, err := a.fence.ClusterEntry(ctx, r.tag)
		if err != nil {
			return storeError(err)
		}
		r.space, r.plan.ClusterFence = space, e.End
		if ok {
			r.fence = fence.NumberOf(space)
		}
		if e.End > r.high {
			r.high, r.holder = e.End, "the cluster fence holds"
		}
	}
	if r.board != nil {
		node, err := r.askNodes(ctx)
		switch {
		case errors.Is(err, ErrSchema) && r.above > 0:
			r.board, r.alone = nil, firstLine(err)
		case err != nil:
			return fmt.Errorf("ask the nodes for the highest number of tag %q: %w", r.tag, storeError(err))
		case node == DeletedRow:
			r.holder = "the deleted row had"
		case node != "":
			r.holder = fmt.Sprintf("node %s holds", node)
		}
	}
	r.plan.Alone = r.alone
	r.plan.Untold = r.mute
	return nil
}

// decide completes the plan, or says why there is none.
func (r *repair) decide() error {
	now := r.alloc.rt.Now()
	known := max(r.high, r.plan.Row)
	limit, beyond := r.options.beyondPeriod(r.above, now)
	first, why, before := r.options.beforePeriod(r.above, now)
	switch {
	case beyond && known < limit:
		next := r.options.nextPeriod(known, now) // in the last hour of a period, limit is behind the next one
		return fmt.Errorf("%w: above must be below %d, with which the next period of tag %q begins by the clock of this node, which must be right, and not %d: "+
			"no node would issue a number of the tag before that period, and the row can never go back. If your tables have no number of that period, and the sum cannot be lower, "+
			"give %d (--above): the tag then issues nothing until that period", leaf.ErrConflict, next, r.tag, r.above, next-1)
	case before && r.above != 0 && known < first:
		return fmt.Errorf("%w: above=%d for tag %q %s", leaf.ErrConflict, r.above, r.tag, why)
	case r.above != 0 && r.above < r.high-1 && (r.above >= r.repaired || len(r.silent) > 0):
		return fmt.Errorf("%w: %s numbers of tag %q up to %d, so above=%d could repeat some; use %d or more%s", leaf.ErrConflict, r.holder, r.tag, r.high, r.above, r.high, r.others())
	case r.above != 0:
	case r.board == nil:
		return fmt.Errorf("%w: the other nodes cannot be asked for their numbers of tag %q: find the highest number in your own tables and give %s (--above)", leaf.ErrConflict, r.tag, generously)
	case len(r.silent) > 0:
		return r.silence("start them and repeat the command" + r.copies() + ". If one is gone for good with its data directory, find the highest number of the tag in your own tables and give " + generously + " (--above)")
	case r.high <= 0 && r.plan.Row < 0: // the row was the last one to know
		return fmt.Errorf("%w: max_id of tag %q is %d, which no node wrote, and no node or database that can be asked knows a number of the tag; nodes that are gone with their data directories may have issued some: "+
			"find the highest number of the tag in your own tables and give %s (--above), or 1 if no table has one", leaf.ErrConflict, r.tag, r.plan.Row, generously)
	}
	r.high = max(r.high, r.above, r.plan.Row)
	if r.high >= MaxMaxID {
		return fmt.Errorf("%w: tag %q has numbers up to %d", leaf.ErrOverflow, r.tag, r.high)
	}
	r.plan.Above, r.plan.First = r.high, r.high+1
	return nil
}

// askNodes posts a question and waits for the answers. node names the one with the
// highest end, if that is higher than what was known.
func (r *repair) askNodes(ctx context.Context) (node string, err error) {
	n, err := r.notice(ctx) // without one a node that made its fence anew may have latched the tag
	if err != nil {
		return "", err
	}
	if odd := max(n.Regress, n.Repaired); odd > MaxMaxID {
		return "", fmt.Errorf("%w: tag %q has the number %d in leaf_repair, must be 0 to %d; no node wrote that, and nodes ignore the row: correct it", leaf.ErrConflict, r.tag, odd, int64(MaxMaxID))
	}
	r.high, r.repaired = max(r.high, n.Regress, n.Repaired-1), n.Repaired
	r.plan.Posted = max(n.Regress, n.Repaired-1, 0)
	if err := r.question(ctx, n.Asked); err != nil {
		return "", err
	}
	answers, err := r.answers(ctx, 0)
	r.heard = nil
	for _, x := range answers {
		if x.High > MaxMaxID {
			return "", fmt.Errorf("%w: tag %q has the number %d of node %s in leaf_repair_node, must be 0 to %d; no node wrote that: correct it", leaf.ErrConflict, r.tag, x.High, x.Node, int64(MaxMaxID))
		}
		if x.Asked >= r.asked {
			r.heard = append(r.heard, x.Node)
		}
		r.latched = r.latched || x.Latched
		if x.High > r.high {
			r.high, node = x.High, x.Node
		}
	}
	r.note(answers)
	return node, err
}

// move moves the row above the number and lets every node heed it. again: the number
// was too low for some node.
func (r *repair) move(ctx context.Context) (again bool, err error) {
	a, to := r.alloc, r.high+1
	r.plan.First, err = r.lift(ctx)
	missing := errors.Is(err, leaf.ErrUnknownTag)
	if err != nil && (!missing || !r.latched) {
		r.forget(ctx)
		return false, err
	}
	n := Notice{Tag: r.tag, Repaired: to}
	if r.board != nil {
		if err := r.post(ctx, n); err != nil {
			return false, fmt.Errorf("max_id of tag %q is %d, but the tag is not released yet: %w", r.tag, r.plan.First, storeError(err))
		}
	}
	if _, err := a.heed(n, r.began); err != nil {
		return false, fmt.Errorf("%w: max_id of tag %q is %d, but its release is not on the disk yet: %w", leaf.ErrNotReady, r.tag, r.plan.First, err)
	}
	if r.board != nil {
		if again, err = r.confirm(ctx, to); again || err != nil {
			return again, err
		}
		// A node that stopped before it read of the repair may have returned numbers.
		row, err := r.raise(ctx, to)
		if err != nil && !missing {
			return false, err
		}
		r.plan.First = min(r.plan.First, row)
	}
	if a.fence.Mark(r.tag).Latched {
		return true, nil
	}
	a.log.Info("tag repaired", "tag", r.tag, "max_id", r.plan.First, "above", r.high, "silent_nodes", strings.Join(r.mute, " "))
	if missing {
		return false, fmt.Errorf("%w: tag %q is released; a new row below %d will be refused", leaf.ErrUnknownTag, r.tag, to)
	}
	return false, nil
}

// raise moves row and cluster fence to the number where they lie below, and returns where
// the row is. A cluster fence is moved although the row is missing.
func (r *repair) raise(ctx context.Context, to int64) (row int64, err error) {
	a := r.alloc
	row, err = bounded.Do(ctx, &r.shard.calls, a.cfg.LoadTimeout, func(ctx context.Context) (int64, error) {
		return r.shard.store.Raise(ctx, r.tag, to)
	})
	missing := errors.Is(err, leaf.ErrUnknownTag)
	if err != nil {
		err = storeError(err)
	}
	if err != nil && (!missing || !r.latched) || !a.fence.HasCluster() {
		return row, err
	}
	if failed := a.fence.RaiseCluster(ctx, r.space, r.tag, to); failed != nil {
		return row, fmt.Errorf("max_id of tag %q is %d, but the tag is not released yet: %w", r.tag, row, storeError(failed))
	}
	return row, err
}

func (r *repair) post(ctx context.Context, n Notice) error {
	return r.shard.post(ctx, func(ctx context.Context) error { return r.board.Post(ctx, n) })
}

// LargestRange says how long a range can be that a node has taken of a tag, for an operator who
// must find a number above those that a lost node may have issued. The ranges of all nodes count: those of the others can
// lie between the highest number that a table has and the range of the lost node. So do those of all terms of strict order: the
// stock of a term ends with it.
const LargestRange = "the largest range a node can take (the largest of segment.max-step, and of the tag's step, min-step and max-step; if one was lowered, its value before; of a Java server 1,000,000, or the tag's step if that is larger) for each start of a node since that number was issued, for each node that ran then, and, of a tag in strict order, for each order.lease since then (2 s), because it can have had another owner in each"

// Margin is what to add to the highest number that people find in their tables: IDs that are on their way to
// one, and ranges of which no ID is in one yet.
const Margin = "three times " + LargestRange + ", plus " + OfClients + given

// OfClients is the part of what is to be added that no range shows: numbers above the highest one in a table that calls have used up.
// Behind them may lie others that were issued.
const OfClients = "what clients hold in caches, batches and open transactions, have lost in calls that failed, have deleted from your tables, and have skipped in a sequence"

// given is the number that IDs go on above although no table has one of them yet.
const given = " (" + givenNumber + ")"

const givenNumber = "if the tag was given a higher number since, by --start, --above or max_id, begin with that one"

// givenToRow says which ID stands for a number that was typed for a row of a tag in several databases. The IDs of the row go on less
// than K blocks beside K times the number, and K is in the row's name.
const givenToRow = "multiply one that was given to a row by the number behind its \"of\", such as %d in TAG~1of%[1]d~1000"

// AboveAll says with what an operator makes a row again of which no node and no database knows any more: the
// options, without which a tag in strict order would be in plain order, and a number above all that were issued.
const AboveAll = "the options that the tag had, such as --order strict, and as NUMBER the highest ID of the tag in your own tables, plus " + Margin + "; for a tag in several databases, add all this and one block once for each of them, and multiply a number that was given to a row of it by the number behind its \"of\"; the rows of a sequence, NAME/seq/0000 to NAME/seq/1023, are tags with --order strict --fixed-step"

// generously is what an operator gives for the highest number that is found.
const generously = "that number plus " + Margin + "; numbers cost nothing, so add generously"

// others says that a number must do for nodes that are gone or silent, too.
func (r *repair) others() string {
	if len(r.silent) == 0 {
		return "; if a node is gone with its data directory, or Java servers have taken ranges, add to this what is to be added to the highest number in your own tables"
	}
	return fmt.Sprintf(", and more than these nodes may have issued, which do not answer: %s", strings.Join(r.silent, ", "))
}

// copies explains the silent names that no node has: a second process with the identity of a node
// ran under such a name, and ended without a clean stop.
func (r *repair) copies() (text string) {
	for _, name := range r.silent {
		if node, copied := copyOf(name); copied {
			text += fmt.Sprintf(". %s was a second process with the identity of %s: if only one runs now, %s counts as gone for good", name, node, name)
		}
	}
	return text
}

func (r *repair) silence(do string) error {
	return fmt.Errorf("%w: %w: %s: %s", leaf.ErrNotReady, ErrSilentNodes, strings.Join(r.silent, ", "), do)
}

// storeError adds leaf.ErrNotReady to an error that has no class of its own.
func storeError(err error) error {
	if leaf.ClassOf(err).Err == nil {
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return err
}
