// Package sequence gives each entity of a tag, such as a user or a chat, strictly increasing numbers of its
// own. [Positions] holds the next numbers of one tag's entities; [Blocks] gives it the numbers to count with.
//
// # How it works
//
// The entities of a tag are hashed to [Sections] sections. What is stored is one number a section, its end:
// above every number that any entity of the section was given. A section reserves blocks of numbers, and
// every entity of the section counts within the same blocks: user 7 gets 41, 42, 43, and user 8 gets 41, 42, 43
// as well. So a restart reads a row for each section, not one for each entity (the model of WeChat's seqsvr).
//
// A section has a span: blocks that touch each other. The position of an entity is its next number, in memory. The
// section has a base within the span, where entities without a position begin. All positions are above the base,
// and none passes the end of the span: the section reserves the next block before.
//
// # What it promises
//
//  1. No entity is given a number twice, by any node. Different nodes reserve different blocks, and an entity
//     is given numbers of blocks of this node only. This needs no owners and no clocks: it holds while two
//     nodes take themselves for the owner of a section.
//  2. So a block that does not touch the span begins a new span. The numbers between the two may be those of
//     another node, and no entity counts through them.
//  3. The numbers of an entity increase: if the answer of one call arrives before another call begins, anywhere,
//     the second number is larger. One node owns a section at a time, in a [Term], and a block lies above all
//     that was reserved before its term.
//  4. A call takes its numbers first, then asks whether the term is valid, and then answers. If the term has
//     ended, its numbers are lost, and so is the memory of the term.
//  5. An entity without a position begins at the base. The base is above every number that such an entity was
//     given in this span, because a position leaves the memory only when the base has reached it.
//  6. A block that begins below the end of an earlier one is refused, also across terms.
//  7. Two entities that share a position get gaps, never a number twice. So the position of a text is kept by
//     a hash of it.
//
// # Gaps
//
// Numbers jump, and no option makes them gapless: the numbers of a call whose answer is lost are lost. An entity
// also jumps to a new base after a change of owner, after a restart, after a block that does not touch the one before
// (a reply of the store was lost), and when its position was evicted. In a section that no node has used the first
// number is that of the row, 1.
//
// # Eviction
//
// A section that has as many positions as it may raises its base over about a quarter of them, the lowest.
// The positions that the base has reached are dropped: their entities begin at the base, which is where they
// were or above. An entity that is used again costs no read, only the jump, which is the smallest one that
// makes the room. To drop those that were not used for longest would raise the base over the highest of them.
//
// # Retries, batches and bounds
//
// A call may be repeated: the new numbers are larger, and the first ones are lost. SkipTo gives the same result
// when it is repeated. The requests of one batch count as calls at the same time, each with a result of its
// own. A call that finds no block reserves one, once for all callers of the section, and waits up to
// Config.MaxWait. No mutex is held meanwhile. Positions cost at most 16 bytes an entity, text or number.
//
// # What it does not do
//
// It forwards nothing: a node that does not own a section answers leaf.ErrNotReady. It stores nothing, and
// knows no fence: [Rows] takes blocks from tags of segment mode in strict order, whose fences, latch and repair hold
// for the row of a section as for any other. The number of sections can never change: an entity in another section
// would repeat its numbers.
package sequence
