//go:build !unix

package ownership

import "io/fs"

// Inherit does nothing where files have no owner.
func Inherit(interface{ Chown(uid, gid int) error }, fs.FileInfo) {}
