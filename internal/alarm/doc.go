// Package alarm is the leaf.Alarms of a real node: it keeps the list of active
// alarms, counts them, writes them to the log and posts them to a webhook.
//
// # What it promises
//
//  1. Raise and Clear return at once, whatever the log and the webhook do: they
//     change memory under a mutex that is never held over I/O, and may be called
//     under any lock of an engine. Goroutines of the Board write the lines and send
//     the posts.
//  2. The list of active alarms and the counters are exact at any moment, up to
//     1000 alarms of a code by name; beyond that number they are counted, not named,
//     and stand in the list as one alarm with the subject "*".
//  3. The log has one line at ERROR when an alarm begins and one at INFO when it
//     ends, with the attributes code, subject and do. An alarm that is raised again
//     with another text writes at most one line a minute. In a storm each code
//     writes at most a hundred lines a minute, and one that says so.
//  4. The webhook gets the newest state of each alarm, in the order in which the
//     alarms changed, at least once, retried with a back-off. Where it is slower
//     than the alarms, it sees the newest state only; of those that wait, at most
//     Webhook.Queue, the oldest are dropped and counted.
//  5. Close sends what waits, within its context, and leaves no goroutine.
//
// # What it does not do
//
// It decides nothing: whether an alarm makes the node not ready is the program's
// choice. It keeps no history and nothing on the disk: after a restart the engines
// raise what still is.
package alarm
