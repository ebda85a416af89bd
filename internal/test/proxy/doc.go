// Package proxy stands between a client and a server and makes the network
// fail, on purpose and at an exact moment.
//
// It promises:
//
//  1. Bytes pass unchanged and in order, in each direction, or not at all.
//  2. A reply that a hook cuts off has not reached the client, and the server
//     has sent it: it had carried the request out.
//  3. Once Cut, Refuse, Swallow, Hold or Retarget has returned, it holds: no byte
//     that was read later passes, and no later connection goes to the old target.
//  4. Close ends all goroutines and connections of the proxy.
//  5. Nobody else gets the proxy's port before Close, also while it refuses
//     (Linux: see test/port).
//
// A partition of the network is Swallow of both sides, if what was on its way is
// to be lost, or Hold of both, if it is to arrive late, as TCP delivers it.
//
// What goes wrong at random (Jitter, CutAtRandom) is drawn from a seed. Retarget
// moves a stable address from one server to another; a client that is to see
// another server than the rest has a proxy of its own.
//
// It does not understand any protocol: a hook sees bytes as they were read from
// the connection, at best whole packets. It does not look into TLS.
package proxy
