// Package accept is what the servers have in common about connections: how they begin, which
// client is at the other end, and how they end.
//
// [Listener] is a net.Listener with a limit and with patience. A server that runs its
// connections itself calls [Listener.Serve]; one whose library wants to accept passes
// the Listener on.
//
// # Promises
//
//  1. At most Config.MaxConns connections are open at a time. One more is told so by
//     Config.Refuse, or only closed. Refusing never delays the next Accept, takes a
//     second at most, and goes on for at most 64 connections at a time.
//  2. A shortage that can pass, such as that of file descriptors, and an error that
//     belongs to one connection are waited out, from 5 ms up to 1 s between two attempts.
//     Every other error of the listener ends Accept and Serve.
//  3. A connection has its place until it is closed, by whomever, and once only.
//  4. After Close no connection gets a place, and nothing runs that Serve has not started
//     before. A connection that is accepted in the same moment is closed.
//  5. Drain interrupts the reads of all connections once, after [Listener.Closed] has
//     become true: a reader that sets its deadline and then finds Closed false is
//     interrupted. Those given to [Conn.Spare] are left alone.
//  6. [Listener.Drained] is closed when the listener is, and everything that Serve has
//     started, refusals included, has returned.
//  7. No mutex is held while anything waits.
//
// # What it does not do
//
// It knows no protocol and no time limits of one: idle, slow and silent clients are the
// servers' business. It does not recover panics of the functions that it is given.
package accept
