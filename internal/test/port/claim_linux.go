package port

import (
	"context"
	"fmt"
	"io"
	"net"
)

// claimNumber binds an abstract Unix socket whose name is the port. The kernel
// grants it once in the same network namespace in which ports are unique, takes
// it back when the process dies, and leaves no file.
func claimNumber(ctx context.Context, number int) (io.Closer, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "unix", fmt.Sprintf("@leaf-test-port-%d", number))
}
