package chaos

import (
	"context"
	"io"
	"net"
	"time"
)

// stall is how long an echo inside the run must take to count: nothing that the
// program does can make it so, only a machine that has too much to do.
const stall = 100 * time.Millisecond

// Machine is how well the machine served the run itself, and with it everything.
type Machine struct {
	Worst time.Duration // the longest that an echo of the run took
	Lost  time.Duration // how long those took that were longer than 100 ms, in all
}

// watchMachine measures until ctx ends: a byte that goes through loopback and back,
// between two goroutines of the run, takes the way of a request without a node. A
// timer alone does not tell: it is at most 0.1 s late where such a byte takes 1.6 s.
func watchMachine(ctx context.Context) (m Machine, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return m, err
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return m, err
	}
	defer conn.Close()
	tick := 10 * time.Millisecond
	for one := []byte{0}; ; {
		from := time.Now()
		if pause(ctx, tick) != nil {
			return m, nil
		}
		if _, err := conn.Write(one); err != nil {
			return m, err
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			return m, err
		}
		if took := time.Since(from) - tick; took > stall {
			m.Lost += took
			m.Worst = max(m.Worst, took)
		}
	}
}

// starved reports whether times measured in a run of that length mean nothing: its
// own echoes stood still for more than one part in two hundred.
func (m Machine) starved(ran time.Duration) bool { return m.Lost*200 > ran }
