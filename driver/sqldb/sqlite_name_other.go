//go:build !linux

package sqldb

import "io/fs"

// otherNames knows nothing on this system.
func otherNames(string, fs.FileInfo) (names uint64, mounted bool) { return 0, false }
