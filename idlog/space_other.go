//go:build !unix

package idlog

import "errors"

// freeSpace is not known here; a full disk is noticed when it is full.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
