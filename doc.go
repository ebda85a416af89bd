// Package leaf is the vocabulary of Leaf for Go, a distributed service that
// hands out unique 64-bit IDs.
//
// It holds what every other room of the module speaks about and nothing that
// does anything by itself: [Range], [Issuer], the errors and their table
// ([ClassOf]), the rule for tag names ([ValidateTag]), and [Runtime], the seam
// through which engines reach clock, goroutines and waiting. It imports the
// standard library only.
//
// To issue IDs inside a program, start with package segment and a driver; the
// example there runs. To run a server, see cmd/leaf.
package leaf
