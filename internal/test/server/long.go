package server

import "os"

// Long reports whether LEAF_LONG=1 asks for the full loads (make test-long)
// instead of their short versions.
func Long() bool { return os.Getenv("LEAF_LONG") == "1" }
