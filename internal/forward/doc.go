// Package forward lets every node answer calls for tags in strict order: a node that does not own a tag
// takes the call to the node that does.
//
// [Issuer] stands in front of the engine of segment mode. A call that the engine answers costs one
// comparison more. One that it refuses with an [owner.ElsewhereError] goes to the owner over gRPC
// ([Peers]). The owner trusts it, because it shows the nonce of the owner's session, which only nodes
// read: the client was checked where it came in.
//
// The promises:
//
//  1. A call is answered by the engine of one node, within a term of that node. So the promise of
//     strict order holds for forwarded calls as it does for direct ones: the number is taken between the
//     begin and the end of the call.
//  2. A forwarded call is not forwarded again ([Here]), so there are no loops. A node that is not the
//     owner any more says so, and the node that asked reads the registry and tries again.
//  3. A call waits while no node owns its slot, or while the owner does not answer, at most for
//     Config.MaxWait and until its deadline, and at most Config.MaxWaiting calls wait so at once. They ask for no
//     [leaf.Admission]: how long an owner is away says nothing about the store, and calls that the store can serve
//     must not be rejected for it.
//  4. What the owner answers about the tag or the request ends the call. A call without an answer is
//     asked again: its IDs, if it had any, are lost.
//  5. Calls for IDs use streams that stay open. A stream has one call at a time, and none after a call that it has not
//     answered: no call can get the IDs of another one. Each session of a node, which is that of one database, has a connection
//     of its own, and on it calls for IDs and calls for sequences are bounded, each for itself: what an owner cannot answer for
//     one database takes no stream from calls for another one.
//  6. Calls for a tag that come while one is on its way to the owner wait for its end, and then go together. None joins
//     what is on its way already: its numbers may be older than the call. When the owner has not the IDs of all, fewer calls
//     go together from then on, and those go again that have the time.
//  7. A call for many IDs goes by itself, and few of them for one tag at the same time: a tag for which the owner has no IDs,
//     as while its row is locked, leaves streams to the others.
//
// What it does not do: it limits nothing, and it checks no client.
package forward
