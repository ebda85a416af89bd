// Package limit is the one layer of authorisation and limits in front of every
// protocol: a [Gate] is a leaf.Access.
//
// It decides, in this order, whether a request goes on to the engine:
//
//  1. the token of the client (leaf.ErrUnauthenticated);
//  2. the switch of the client and of the tag (leaf.ErrBlocked);
//  3. rate and quota of the client, then of the tag (leaf.ErrThrottled with the time
//     after which a retry can succeed);
//  4. if the engine has to let it wait, the number of requests that wait already, whose
//     limit adapts: when the wait gets long, the newest are rejected at once in place
//     of all getting slow (leaf.ErrExhausted). A request that finds IDs in stock is never
//     rejected for this reason, however many others wait.
//
// Limits of clients hold in every mode, those of tags in segment mode only: the key of
// snowflake mode is free text.
//
// Promises:
//
//   - A limit never touches uniqueness: a request is refused before an ID is taken. Only a
//     batch that has to wait in the middle and is rejected there loses what it had
//     taken, as it would at its deadline.
//   - Limits count IDs, not requests, except the concurrency limit, which counts requests. IDs
//     that were asked for and not issued, because something else failed, do not count.
//   - Rates and quotas are those of one node: each enforces them by itself, so that no
//     request needs another node. n nodes let n times as much through.
//   - New [Rules] count for the next request, also on connections that are open. What a
//     rule has counted stays as long as its limit stays.
//   - A tag or client without a rule costs one lookup and no lock.
//   - Memory is bounded whatever names clients give themselves.
//   - Health checks and the administrator's interface do not pass through here and are
//     never rejected.
//
// A batch that is larger than one second's rate goes through when nothing was taken for a
// second, and what follows waits until it is paid off; beyond a minute's worth, and above
// the quota, it is leaf.ErrBadRequest, because it could never be served.
//
// What it does not do: it stores nothing. Rules come from a [Store], read every few
// seconds; while the store does not answer, the last ones stay in force, and at the start
// requests wait for the first ones (follow_start.go). A quota counts
// from zero after a restart. A name that a client gives itself proves nothing: any client
// that may connect can use any name.
package limit
