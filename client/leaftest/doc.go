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
// IDs of a tag begin at 1 and grow without gaps, so a test can name them. That is more
// than a cluster promises.
package leaftest
