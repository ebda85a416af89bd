package server_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

var apart = map[string]func(testing.TB, int) *server.Ensemble{
	"zookeeper": server.OwnZooKeeperApart,
	"etcd":      server.OwnEtcdApart,
}

// TestPartition cuts the leader off: it serves no longer, the others go on, and
// after the healing all have the same.
func TestPartition(t *testing.T) {
	t.Parallel()
	for kind, own := range apart {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e, s := own(t, 3), ensembles[kind].store
			mustPut(t, s, e.Servers(), "/before")
			cut := leader(t, e)
			if err := e.Partition(t.Context(), cut); err != nil {
				t.Fatal(err)
			}
			others := []string{e.Addr((cut + 1) % 3), e.Addr((cut + 2) % 3)}
			waitUntil(t, "another one leads", func() bool { return leader(t, e) != cut })
			waitUntil(t, "the one cut off does not serve", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				return e.Wait(ctx, cut) != nil
			})
			mustPut(t, s, others, "/meanwhile")
			if err := e.Heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := e.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := mustCount(t, s, []string{e.Addr(cut)}, "/"); got != 2 {
				t.Errorf("%d keys on the node that was cut off, want 2", got)
			}
		})
	}
}

// TestSeverIsOneWay sends datagrams beside the servers' own traffic, because a
// connection needs both directions.
func TestSeverIsOneWay(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	e := server.OwnEtcdApart(t, 2)
	sockets := make([]net.PacketConn, e.Len())
	for i := range sockets {
		sockets[i] = listenBeside(t, e.Addr(i))
	}
	passes := func(from, to int) bool {
		return arrives(t, sockets[from], sockets[to])
	}
	want := func(when string, there, back bool) {
		t.Helper()
		if got := passes(0, 1); got != there {
			t.Errorf("%s: from 0 to 1 passes: %v, want %v", when, got, there)
		}
		if got := passes(1, 0); got != back {
			t.Errorf("%s: from 1 to 0 passes: %v, want %v", when, got, back)
		}
	}
	want("at first", true, true)
	if err := e.Sever(t.Context(), 0, 1); err != nil {
		t.Fatal(err)
	}
	want("0 to 1 severed", false, true)
	if err := e.Sever(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	want("both severed", false, false)
	if err := e.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("healed", true, true)
}

func TestSeverNeedsNodesApart(t *testing.T) {
	t.Parallel()
	if err := server.OwnEtcd(t, 2).Sever(t.Context(), 0, 1); !errors.Is(err, server.ErrNoNetwork) {
		t.Errorf("Sever on the loopback: %v, want ErrNoNetwork", err)
	}
}

// listenBeside opens a socket for datagrams in the network namespace of the
// server at addr. The thread that enters it is not used again.
func listenBeside(t *testing.T, addr string) net.PacketConn {
	t.Helper()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	pid := serverAt(t, addr)
	type result struct {
		net.PacketConn
		err error
	}
	opened := make(chan result)
	go func() {
		runtime.LockOSThread()
		fd, err := unix.Open(filepath.Join("/proc", pid, "ns", "net"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			opened <- result{nil, err}
			return
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			opened <- result{nil, err}
			return
		}
		socket, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
		opened <- result{socket, err}
	}()
	r := <-opened
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// serverAt returns the ID of the process that was told to listen at addr.
func serverAt(t *testing.T, addr string) (pid string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		command, _ := os.ReadFile(path)
		if strings.Contains(string(command), "--listen-client-urls=http://"+addr+"\x00") {
			return filepath.Base(filepath.Dir(path))
		}
	}
	t.Fatalf("no process listens at %s", addr)
	return ""
}

func arrives(t *testing.T, from, to net.PacketConn) bool {
	t.Helper()
	buffer := make([]byte, 8)
	for { // what an earlier question left
		_ = to.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, _, err := to.ReadFrom(buffer); err != nil {
			break
		}
	}
	if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	_ = to.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	_, _, err := to.ReadFrom(buffer)
	return err == nil
}
