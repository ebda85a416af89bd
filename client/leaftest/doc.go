// Package leaftest is a Leaf server for the tests of programs that use the Go client: a
// real gRPC server on a loopback port, with IDs from memory. It starts in a millisecond
// and can be told to fail, to be slow, or to be away.
//
//	func TestOrders(t *testing.T) {
//		s := leaftest.New(t, "order")
//		shop := NewShop(s.Client()) // takes a leaf.Issuer
//		...
//		s.Fail(leaf.ErrNotReady) // what does the shop do now?
//	}
//
// Promises:
//
//  1. IDs of a tag, and numbers of an entity of a sequence (AddSequence), begin at 1 and grow
//     without gaps, so a test can name them. That is more than a cluster promises.
//  2. The errors of Fail reach the caller as a node's do: errors.Is finds them.
//  3. After the test, or Close, nothing of the server and of its clients runs.
//
// It has no limits, no credentials and no TLS, and knows one node. Snowflake mode counts
// too: its IDs say nothing about time or worker.
package leaftest
