package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func mountTmpfs(path string, bytes int64) error {
	err := syscall.Mount("leaf-test", path, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, fmt.Sprintf("size=%d,mode=0755", bytes))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w (%w): run as root, in a container with CAP_SYS_ADMIN", ErrNoMount, err)
	}
	return err
}

// unmountBelow unmounts all that is mounted in a folder, the innermost first.
// Detached at once, a file system that is in use goes with its last user.
func unmountBelow(folder string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil //nolint:nilerr // without it nothing of ours was mounted
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		// number, parent, device, root, mount point, ...
		if f := strings.Fields(line); len(f) > 4 {
			if point := strings.ReplaceAll(f[4], `\040`, " "); strings.HasPrefix(point, folder+"/") {
				points = append(points, point)
			}
		}
	}
	var errs []error
	for _, point := range slices.Backward(points) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}
