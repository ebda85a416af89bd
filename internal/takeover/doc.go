// Package takeover decides where the numbers of a tag begin that another ID service hands out
// today, and whether the numbers of both can meet. It reads and writes nothing itself: drivers
// read the counters of the other service, and commands write the rows of tags.
package takeover
