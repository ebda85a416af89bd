// Package cache holds ranges of IDs in the memory of a client, so that a call costs
// nanoseconds: a [Cache] is a leaf.Issuer on top of a leaf.Issuer.
//
// It is the double buffer of the server once more: while one range of a tag is handed
// out the next is fetched in the background, and its size follows the demand.
//
// Promises:
//
//  1. An ID that the source gave is handed out at most once, by this cache only.
//  2. Within one range IDs grow in the order in which they were taken. Across ranges
//     they grow only as far as the source's do: ranges of two nodes may come in any order.
//  3. A fetch whose outcome is unknown is wasted, never repeated.
//  4. Close stops handing out. What was fetched and not handed out is counted
//     ([Stats.Unused]) and never issued.
//  5. While the source fails, the IDs in memory are handed out. A call that finds none
//     gets the source's error, at once or by its deadline. When the error is a lack of
//     time, it is that of a fetch that began after the call. Only leaf.ErrRegress makes
//     the cache drop what it has of the tag: the source's store went backwards, and may
//     have given these IDs twice.
//  6. Of a tag in strict order the cache keeps nothing: its calls go to the source, and so does every
//     call that waits for the fetch by which the cache hears of it ([StrictIssuer]). A cache that holds
//     IDs from before hands them out until its next fetch.
//  7. The hot path takes no lock and allocates nothing. All waiting is leaf.Runtime's,
//     so that the simulation drives the cache like an engine.
//
// What it does not do: it does not see restarts of its own process as a gap to be
// filled: IDs in memory are lost with it. It is for segment mode: a snowflake ID that
// lies in a cache says nothing about the time when it was used.
package cache
