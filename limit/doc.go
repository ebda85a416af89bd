// Package limit is the one layer of authorisation and limits in front of every
// protocol: a [Gate] is a leaf.Access.
//
// It decides, in this order, whether a request goes on to the engine:
//
//  1. the token of the client (leaf.ErrUnauthenticated);
//  2. the switch of the client and of the tag (leaf.ErrBlocked);
//  3. rate and quota of the client, then of the tag (leaf.ErrThrottled with the time
//     after which a retry can succeed);
//  4. the concurrency of the whole node, which adapts: when requests begin to wait, the
//     newest are turned away at once in place of all getting slow (leaf.ErrThrottled).
//
// Promises:
//
//   - A limit never touches uniqueness: a request is refused before an ID is taken.
//   - Limits count IDs, not requests, except the concurrency, which counts requests.
//   - Rates and quotas are those of one node: each enforces them by itself, so that no
//     request needs another node. n nodes let n times as much through.
//   - New [Rules] count for the next request, also on connections that are open.
//   - A tag or client without a rule costs one lookup and no lock.
//   - Memory is bounded whatever names clients give themselves.
//   - Health checks and the administrator's interface do not pass through here and are
//     never turned away.
//
// What it does not do: it stores nothing. Rules come from a [Store], read every few
// seconds; while the store does not answer, the last ones stay in force. A quota counts
// from zero after a restart.
package limit
