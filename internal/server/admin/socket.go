package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketName is the name of the socket in the data directory.
const socketName = "leaf.sock"

// maxSocketPath is the longest path of a Unix socket in bytes: the size of
// sun_path less its end mark. Linux has 108 bytes, the BSDs have 104.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// SocketPath returns the path of the socket in dataDir, which must be absolute, or
// an error if it is too long for the system.
func SocketPath(dataDir string) (string, error) {
	path := filepath.Join(dataDir, socketName)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("admin socket: the path %s has %d bytes, and the system allows %d: choose a shorter --data-dir", path, len(path), maxSocketPath)
	}
	return path, nil
}

// Listen binds the socket in dataDir. A socket that is left there is removed
// first, so the caller must hold the lock of the data directory; anything else at
// its place is an error. Closing the listener removes the socket.
func Listen(ctx context.Context, dataDir string) (net.Listener, error) {
	path, err := SocketPath(dataDir)
	if err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	lc := net.ListenConfig{Control: ownerOnly}
	ln, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // where ownerOnly has no effect
		_ = ln.Close()
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	return ln, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket: remove it", path)
	}
	return os.Remove(path)
}

// ownerOnly sets the mode of the socket before it is bound, so that it never
// exists with another one. Linux takes the mode of the new file from here; systems
// that refuse this are served by the Chmod after it, and by the mode of the folder.
func ownerOnly(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
