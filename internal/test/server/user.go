package server

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// serviceUser returns the user that a server runs as which does not run as root.
// nil means as ourselves, who are not root.
func serviceUser(name, debianPackage string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("the server does not run as root, and there is no user for it (%w): %w: install the Debian package %s", err, ErrMissing, debianPackage)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// chown gives files to the user that a server runs as, if that is another one.
func chown(owner *syscall.Credential, paths ...string) error {
	if owner == nil {
		return nil
	}
	for _, path := range paths {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return nil
}
