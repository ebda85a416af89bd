package segment

import (
	"context"
	"fmt"
	"slices"

	"github.com/leaf-idgen/leaf"
)

// Board is where the nodes of a database tell one another of a regress, and where a
// repair asks them (docs/adr/0015). It is in the database of the tags that it tells of:
// a process that may write there is trusted with ranges anyway. A driver's store may implement
// it beside Store. Without it a repair reaches one node only.
//
// The contract of Store holds here too. Where the tables are missing, every method is
// ErrSchema. In the database of another cluster every method is a *ClusterError and changes
// nothing. A board may forget, as its database may: what a node must not forget is in
// its own fence.
type Board interface {
	// Notices returns what is posted, one notice per tag, in no particular order.
	Notices(ctx context.Context) ([]Notice, error)

	// Post raises the numbers of the tag's notice to those of n where they lie below, in
	// one atomic step, or makes the notice. It may be repeated.
	Post(ctx context.Context, n Notice) error

	// Answer replaces the node's answer about the tag.
	Answer(ctx context.Context, a Answer) error

	// Answers returns all answers about a tag, one per node, in no particular order.
	Answers(ctx context.Context, tag string) ([]Answer, error)

	// Forget removes the notice of a tag that holds nothing but the question with the number
	// asked, and the tag's answers that know of no number and no latch, in one atomic step.
	// It changes nothing if the notice is another one. It may be repeated. Forgotten returns
	// the highest number of a question that was removed, 0 if none was.
	Forget(ctx context.Context, tag string, asked int64) error
	Forgotten(ctx context.Context) (asked int64, err error)

	// Enter notes that the node takes ranges from this database. It replaces what was
	// noted of the node before. It lasts for BoardAge by the clock of the database, or
	// until Leave. Nodes returns those that are noted, in no particular order.
	Enter(ctx context.Context, m Member) error
	Leave(ctx context.Context, node string) error
	Nodes(ctx context.Context) ([]Member, error)
}

// Member is a node that takes ranges from a database.
type Member struct {
	Node string // identity of its data directory; of processes that share one, see takePlace

	// Process is not 0, and larger for the process of a node that entered later.
	Process int64

	// Fence tells cluster fences apart: every range of the node is in the one with this
	// number. 0: the node takes, or may take, ranges without a cluster fence.
	Fence int64
}

// Notice is what the nodes must know of a tag. Its numbers only grow, unless the
// database goes back.
type Notice struct {
	Tag string

	// Asked is the number of the last question. A node answers each with an Answer.
	Asked int64

	// Regress is the highest end that a node held when the store offered it less, 0 if
	// none did. While it is not below Repaired, the tag is stopped on every node.
	Regress int64

	// Repaired is where the last repair moved the row, 0 if there was none. No node
	// issues a number below it.
	Repaired int64
}

// Answer is what a node knows of a tag.
type Answer struct {
	Tag     string
	Node    string // as in Member
	Asked   int64  // the question that it answers, 0 if none was asked; see tellGone
	High    int64  // the highest end that the node reserved, or has heard of from the owner of the tag
	Latched bool
}

// NoticeOf returns the tag's notice among those of a Board, one without numbers if there is none.
func NoticeOf(tag string, all []Notice) Notice {
	if i := slices.IndexFunc(all, func(n Notice) bool { return n.Tag == tag }); i >= 0 {
		return all[i]
	}
	return Notice{Tag: tag}
}

// Check returns why no node can have written n, nil if one can.
func (n Notice) Check() error {
	if err := leaf.ValidateTag(n.Tag); err != nil {
		return err
	}
	for _, number := range []int64{n.Asked, n.Regress, n.Repaired} {
		if number < 0 || number > MaxMaxID {
			return fmt.Errorf("tag %q has a number %d, must be 0 to %d", n.Tag, number, int64(MaxMaxID))
		}
	}
	return nil
}
