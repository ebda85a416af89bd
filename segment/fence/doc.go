// Package fence keeps what a node knows of the ranges that were reserved, and decides
// whether a range may be served. It protects a tag when its database loses commits: the
// database then hands out ranges again that nodes have issued (rules A to C).
//
// The own fence is a mark per tag, the highest end of a range that this node reserved. It is
// in memory and in two files on the node's [Disk]. The cluster fence is a second store that
// all nodes share ([Cluster]), with the highest end that any node reserved. A node may have
// none.
//
// # One door in, one door out
//
// A load calls [Fence.Begin] before it reserves a range and [Load.Admit] before the range is
// served. Between the two it asks the database. Admit returns nil only if
//
//  1. the range starts at or above this node's mark, and at or above the entry of the
//     cluster fence that Begin read;
//  2. that entry was moved to the range's end by one compare-and-set, and the mark of the
//     range's end is durable, in this order;
//  3. the mark is the one that Begin saw, and this node has told no repair meanwhile what it
//     holds;
//  4. the cluster fence was open from Begin to Admit, without a merge in between.
//
// Losing the compare-and-set only means that another node was faster: the range is dropped,
// and the next one loaded at once. A range below the entry is a regress only if the entry
// still is what Begin read, which a compare-and-set to the same end proves; otherwise a node
// has returned numbers meanwhile.
//
// When a tail is returned to the database, [Fence.Lower] lowers the entry and the mark.
//
// # Open or not
//
// The cluster fence is used while it is open: it belongs to this node's cluster, and its
// incarnation is known and holds this node's marks. A new or a wiped one gets them first, and so does one that lost entries. While it
// does not answer, Begin refuses or, with Config.Degrade, admits ranges by the own fence
// alone, after a durable note that the marks must be merged before the cluster fence is used
// again. docs/adr/0010 has the reasons.
//
// # Latches
//
// [Fence.Latch] closes a tag that was offered a range below a fence, and [Fence.Heed] sets a
// mark to what other nodes or a repair posted. Both hold in memory at once, whatever the disk
// does; [Fence.Settle] returns when they are durable. Package segment decides when.
//
// # What it does not do
//
// It does not talk to databases, and does not know what is in memory of a range. Without a
// cluster fence it does not see ranges that other nodes reserved. It does not notice a copied
// data directory (rule L).
package fence
