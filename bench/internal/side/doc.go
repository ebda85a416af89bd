// Package side runs one side of a comparison: a server in a process of its own, so that
// its CPU time and memory can be told from those of the program that drives it.
//
// A program of bench starts itself again for its own servers:
//
//	leaf, err := side.Start(ctx, "leaf", self, "serve", "leaf")
//
// and answers that call with [Serve], which prints the address and stays until standard
// input ends. So such a server never outlives the program that measures it. What does not
// know this agreement, such as redis-server, is a [Daemon]; it ends with the context.
//
// [Engine] is what stands behind leaf on its side: segment mode on a store that costs
// nothing.
package side
