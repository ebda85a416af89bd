// Package check notices, as IDs arrive, that an ID service repeats an ID or goes back.
// It is for tests and canaries: a [Checker] remembers every ID that it was shown.
//
// Promises:
//
//  1. An ID of a tag that was shown before is reported, from whatever source it came.
//  2. An ID of a tag that is not larger than the last one from the same source is
//     reported. A source is whatever promises growing IDs: one stream of one node.
//  3. Nothing is reported that did not happen.
//  4. Memory is bounded: neighbours are one entry, and beyond Config.MaxRanges entries
//     the smallest numbers of the tag are forgotten. [Checker.Forgotten] says how many
//     IDs were, so that a check that is not complete can be told.
//
// What it does not do: it does not compare processes. `leaf verify` compares logs of any
// number of them.
package check
