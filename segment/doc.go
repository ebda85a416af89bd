// Package segment issues IDs from ranges ("segments") that it reserves in a
// [Store], one database write per range. [New] makes an
// [Allocator]; Next and NextN take IDs from it by tag name, a [Tag] handle takes
// them without the look-up.
//
// # What it promises
//
//  1. A range is served only if the committed statement returned it. An error, an
//     unknown outcome, a late or a doubtful result means: no range. Its numbers
//     are lost, never guessed.
//  2. A range that starts below the highest end this node ever reserved for the
//     tag is refused, and latches the tag until [Allocator.Repair], across
//     restarts (guarantee 2, rules A and M). That end, the fence, is durable
//     before the first ID of a range is issued (rule B). With a cluster fence the same
//     holds for the highest end that any node of the cluster reserved, before and after
//     this node was there (rule C).
//  3. Within one process the IDs of a tag increase in the order in which they are
//     taken. A new chunk of a range is published only when the one before it is
//     used up or shut.
//  4. No caller waits for the store in the steady state: when a tenth of a range is
//     used, the next one is loaded in the background. A caller that must wait does
//     so on a channel, up to its deadline or Config.MaxWait, and gets an error that
//     says whether a retry can help.
//  5. One load per tag is in flight (the last one of a deleted tag may overlap the
//     first one of its successor), Config.MaxLoads per database; each has a
//     deadline. A load that fails, hangs or panics is retried after a back-off and
//     never wedges its tag. Tags do not influence one another, unless MaxLoads of
//     them hang at the same moment. A load that has not begun when the last caller that
//     waits for it leaves is not done, and under overload the newest is done first: the
//     store works for those that still wait.
//  6. No mutex is held over I/O or a wait. Taking an ID uses no lock, no
//     allocation and no clock.
//  7. On Close the unused tail of each tag's last range goes back to the store by
//     rule G: nothing can be issued from it any more, the fence is lowered first,
//     and the one compare-and-set is sent once.
//
// # How an ID is taken
//
// A range is served in chunks. A chunk is a cursor and an end; taking an ID is one
// atomic add on the cursor and a comparison with the end. The first chunk is a
// tenth of the range: the caller that finds it used up enters the slow path, asks for the
// next range and publishes the following chunk. As long as no next range is in
// memory, chunks stay tenths, so that a failed load is asked for again at the next
// boundary without a timer; once it is there, the rest is one chunk. The hot path
// therefore knows nothing of loading.
//
// # A late result
//
// A store call that outlives its deadline is abandoned: its tag may load again,
// and whatever the call returns later is dropped. That loses a range and repeats
// none, because a later load starts at or above the end of the abandoned one: the
// store serialises the writes of a row. Abandoned calls are counted, and no new
// ones start while Config.MaxLoads of them have not returned.
//
// # Fences
//
// A load asks package fence twice: before it reserves a range, and before the range is
// served. That package's comment says what it holds a range against.
//
// # What it does not do
//
// Without a cluster fence it does not see ranges that other nodes reserved: after a
// store lost commits, each node protects its own ranges only. With one it does not
// see those of nodes that never used it, such as Java nodes. It does not notice a
// copied data directory (rule L). It does not promise order between
// nodes, nor that every number of a range is used.
//
// It does not remember over a restart which cluster its databases are of. A program
// that keeps sqldb.Store.ClusterID, and gives it to Expect at the next start, is refused by the
// database of another cluster, as leaf serve is; else its ranges are that cluster's from then on.
package segment
