package grpcd

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// watches counts the Watch streams. Each costs a goroutine and its buffers, and no token
// is asked for, so they are bounded over all connections; no connection takes more than
// one for each name.
type watches struct {
	most int

	mu     sync.Mutex
	all    int
	byConn map[string]int // by the address of the client's end
}

// begin counts one stream until done is called. Error: RESOURCE_EXHAUSTED.
func (w *watches) begin(ctx context.Context) (done func(), err error) {
	conn := ""
	if p, ok := peer.FromContext(ctx); ok {
		conn = p.Addr.String()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byConn[conn] >= len(healthNames) {
		return nil, status.Errorf(codes.ResourceExhausted, "leaf: this connection has %d Watch streams already, one for each name", len(healthNames))
	}
	if w.all >= w.most {
		return nil, status.Errorf(codes.ResourceExhausted, "leaf: all %d Watch streams of the node are in use; use Check", w.most)
	}
	if w.byConn == nil {
		w.byConn = map[string]int{}
	}
	w.all++
	w.byConn[conn]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all--
		if w.byConn[conn]--; w.byConn[conn] == 0 {
			delete(w.byConn, conn)
		}
	}, nil
}
