//go:build !unix

package ownership

import "io/fs"

// Inherit does nothing where files have no owner.
func Inherit(interface{ Chown(uid, gid int) error }, fs.FileInfo) {}

// Of returns what [os.Geteuid] and [os.Getegid] return there, the same for all files.
func Of(fs.FileInfo) (user, group int) { return -1, -1 }
