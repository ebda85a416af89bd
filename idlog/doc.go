// Package idlog reads and writes logs of IDs, and checks that no ID in them repeats.
// It knows nothing about Leaf: the logs may come from any ID service. It imports the
// standard library only, and starts goroutines only inside [Check].
//
// A log is one stream: what one client received from one node, in that order. Its
// records are [Record]s, a key (a tag, a table, or nothing) with one ID or a range of
// consecutive ones. IDs are unique per key; the same number under two keys is no
// duplicate, unless [Options].OneSpace says so.
//
// # Formats
//
// Text, for people and other services: one record per line.
//
//	1001              an ID, of the key ""
//	orders 1001       key and ID; separated by blanks, tabs or commas
//	orders 1001-2000  key and an inclusive range
//	orders 7 @50-60   the same with the times of its call, see [Call]
//	"two words",7     a field may be quoted, as strconv.Quote does it
//	# remark          blank lines and lines that begin with # are skipped
//
// Binary, for volume: 2 to 4 bytes per record. See binary.go. [NewReader] recognises
// the format by the first bytes.
//
// # What it promises
//
//  1. [Check] counts every repeated ID and every ID that is not larger than the one
//     before it in its log, and nothing else, for all of int64. With Options.Strict it
//     also counts every record against real time: one whose call began after another
//     one of the key had ended, in whatever log, and whose ID is not larger.
//  2. Its buffers stay within Options.Memory, however large the logs are: it
//     sorts into one temporary file and merges from there. It says beforehand how
//     large that file can get, and refuses if the disk has less free.
//  3. A log whose writer was killed ends in a piece of a record. Such a tail is
//     reported as [Torn] and nothing in it is taken for an ID, since the beginning of a
//     number is a number too. Any other damage is an error that matches [ErrBroken].
//  4. A [Writer] may be used by many goroutines. Its first error stays.
//
// # What it does not do
//
// It cannot know of IDs that are in no log: a reply that was lost, or that its client
// had received but not written when it died. Without times in the logs it sees no order
// between two clients. It believes the times: a clock that is wrong by more than
// Options.ClockError gives false alarms, or hides a violation.
package idlog
