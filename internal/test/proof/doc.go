// Package proof runs the real program against real databases and breaks both:
// processes are killed, the database dies, its rows go backwards. Whoever wants to
// believe that no ID repeats can run it; docs/GUARANTEES.md names each test.
//
// The loads are the smallest that can fail; LEAF_LONG=1 (make test-long) runs them
// in full. The package has tests only.
package proof
