// Package client gets IDs from a Leaf cluster, over gRPC. [New] makes a [Client]; it is
// a leaf.Issuer, for snowflake mode [Client.Snowflake] is.
//
// # What it promises
//
//  1. An ID that a node gave is given to at most one caller. An answer counts only as a
//     whole, and only if it is exactly what was asked for.
//  2. A request whose answer is lost, late or doubtful is asked again, not guessed: its
//     IDs are lost, never repeated. An answer that comes after another one has won is
//     dropped and counted ([Stats.Lost]).
//  3. A caller gets IDs as long as one node of those that the client uses works and can be
//     reached before the caller's deadline, whatever happens to the others and to the
//     registry. Nodes that fail are replaced by others of the list.
//  4. A call ends at its deadline, or after [WithTimeout] if it has none, or if every node
//     says that it cannot. The error is what the nodes said last, in the classes of
//     leaf.ClassOf, with leaf.RetryAfter.
//  5. A call that finds no request of its tag under way sends one at once. Calls that
//     come while one is under way share the next request, in order of arrival.
//  6. Hedges and retries stay within a budget ([WithRetryBudget]).
//  7. After [Client.Close] nothing of the client runs, unless a function of the
//     application does not return: then Close says so. No mutex is held over I/O or a wait.
//  8. A function of the application (a Resolver, a log handler, those of the options) may
//     fail, block or panic: it holds no call beyond its deadline, ejects no node, and the
//     error of the call names it. A panic is logged.
//  9. No call gets an ID that was asked for before the call began. So for a tag in strict order
//     an ID is larger than that of every call, of any program, that had ended before its own call
//     began: also while nodes fail, streams end, and another node becomes the owner of the tag. A cache
//     ([WithCache]) that holds IDs from before the tag was put in strict order hands them out until its next fetch.
//
// # How a call goes
//
// A call joins the lane of its tag and mode. A flight takes all callers that wait there (a
// batch) to a node, as one request for as many IDs as they want together. There is one
// flight per lane, and the next batch gathers while the flight is under way. When a flight
// is late, another one starts beside it.
//
// A client uses a few nodes of the list ([WithMaxNodes]): those that it prefers by
// rendezvous hashing with a random seed of its own, so that clients spread evenly and a
// node that comes or goes moves few of them. A node that fails is replaced by the next one
// of the list until it works again.
//
// The node of a request is one of the own zone while any of them is usable, chosen at random by
// weight, of two the one with less to do. When the answer is late another node is asked
// too. An error that another node may not have (not ready, exhausted, clock, internal,
// no answer) is asked of the others, in rounds with a pause between them, up to the
// callers' deadlines. What may be true of one node only (unauthenticated, unknown tag,
// blocked, invalid row, mode not enabled, numbers used up, throttled) is asked of one other node.
// "Throttled" is then waited out if the callers' time allows. A batch of
// several callers is first cut in half, since a limit may let one of them through; so is
// one that is a bad request, which a limit calls what it could never grant, and one for which the
// numbers of the tag do not suffice. All other errors are answers and end the call.
//
// A node leaves the choice when requests stay without an answer or health checks fail;
// what it answers concerns the tag alone, which asks others first for a while. It comes
// back with a
// tenth of its share, which grows to the whole in 10 s. If no node is left those that
// failed are asked anyway.
//
// A tag in strict order is issued by one node, its owner. Other nodes forward, and every answer
// names the owner. From then on the requests for the tag go to the owner first, if the list has its
// address and the node works, also if it is not among the few nodes that are used; it then gets a link
// for such tags only. An owner that fails is left for other nodes, until an answer names it again.
//
// A call for numbers of a sequence ([Client.Sequence]) joins no lane: it is one request, and what a node
// does not answer in half of the time that is left is asked of another node, to which later calls go first for a while. It
// sends no hedges.
//
// # What it does not do
//
// It cannot tell which of two clusters is the right one: without [WithCluster] it uses the one
// that it meets first, and another client may meet the other one, which gives the same numbers.
//
// It does not catch a panic in what runs inside gRPC and crypto/tls: the functions of a
// tls.Config, and the methods of the connections of [WithDialer]. Such a panic ends the
// process.
//
// It keeps no IDs unless it is told to ([WithCache]), and no numbers of sequences. It promises no order between nodes for a
// tag in plain order: two calls that different nodes answer may get IDs in any order. It does not try another
// node when one says that its store went backwards (leaf.ErrRegress): a node that has
// not noticed is one that may repeat IDs.
package client
