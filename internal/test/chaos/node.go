package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/clock"
)

// stopLimit is how long a clean stop may take: the program's own limit and some.
const stopLimit = 20 * time.Second

// node is one `leaf serve` with its address, data directory and clock, which
// survive its processes. Its methods are safe for concurrent use, except that
// start, kill and stop run one after the other.
type node struct {
	name   string
	addr   string // never another node's, also while this one is down
	dir    string
	log    string
	binary string
	args   []string
	clock  *clock.File
	ways   map[string]ways // to its servers, by what they are for: "database", "fence", "registry"

	mu         sync.Mutex
	process    *process // nil while it is down
	generation int      // counts the processes, from 1
}

// newNode describes a node with its data below folder; start runs it.
func newNode(number int, binary, folder string) (*node, error) {
	name := string(rune('a' + number))
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	n := &node{
		name: name, addr: addr, binary: binary, ways: map[string]ways{},
		dir: filepath.Join(folder, name), log: filepath.Join(folder, "logs", "node-"+name+".txt"),
	}
	if n.clock, err = clock.Open(filepath.Join(folder, "clock-"+name)); err != nil {
		return nil, err
	}
	n.args = []string{
		"serve", "--data-dir", n.dir, "--http-addr", addr, "--admin-addr", n.admin(), // gRPC and RESP are beside it
		"--segment-max-wait", "800ms", // so that the reply comes before the clients' deadline
		"--segment-sync-interval", "2s",
		"--shutdown-timeout", "5s",
	}
	return n, nil
}

// relocate puts the data directory elsewhere, before the first start.
func (n *node) relocate(dir string) {
	n.args[slices.Index(n.args, n.dir)] = dir
	n.dir = dir
}

// admin is where the node serves administration and its own health checks.
func (n *node) admin() string { return n.beside("8081") }

// beside is another port of the node.
func (n *node) beside(port string) string {
	host, _, _ := net.SplitHostPort(n.addr) // made by freeAddress
	return net.JoinHostPort(host, port)
}

// freeAddress returns an address on this machine that nothing listens at. Its IP
// address is a random one of 127.0.0.0/8: no other program, and no other node that
// takes a free port, will listen there while the node is down.
func freeAddress() (string, error) {
	for range 100 {
		addr := fmt.Sprintf("127.%d.%d.%d:8080", 1+rand.IntN(250), rand.IntN(256), 1+rand.IntN(250))
		var lc net.ListenConfig
		l, err := lc.Listen(context.Background(), "tcp", addr)
		if err == nil {
			l.Close()
			return addr, nil
		}
	}
	return "", errors.New("no free address in 127.0.0.0/8: other systems than Linux have only 127.0.0.1")
}

// openFiles is how many files a node may have open, sockets included: what an ordinary
// login gives.
const openFiles = 1024

// start runs the node and returns when it listens, which it does before its
// servers answer.
func (n *node) start(ctx context.Context) error {
	limited := append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, openFiles), n.binary}, n.args...)
	p, err := launch("/bin/sh", limited, append(os.Environ(), n.clock.Env()), n.log)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.process = p
	n.generation++
	n.mu.Unlock()
	return n.await(ctx, time.Minute, "/healthz")
}

// startAgain starts a node that may refuse to: it returns errEnded if the process ends
// soon, which may be after it began to listen.
func (n *node) startAgain(ctx context.Context) error {
	if err := n.start(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	p := n.process
	n.mu.Unlock()
	select {
	case <-p.done:
		return errEnded
	case <-time.After(time.Second):
		return nil
	}
}

// fresh asks over a connection of its own each time.
var fresh = &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get asks for a path of one of the node's HTTP servers.
func get(ctx context.Context, addr, path string) (code int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := fresh.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// errEnded: the process of a node is not there.
var errEnded = errors.New("the process has ended")

// await returns when a path of the node answers 200.
func (n *node) await(ctx context.Context, limit time.Duration, path string) error {
	err := poll(ctx, limit, func(ctx context.Context) error {
		n.mu.Lock()
		p := n.process
		n.mu.Unlock()
		if p == nil || p.ended() {
			return permanent{errEnded}
		}
		code, err := get(ctx, n.addr, path)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%s answers %d", path, code)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("node %s: %w\n%s", n.name, err, n.tail())
	}
	return nil
}

// kill ends the process as a crash would, and returns when it is gone.
func (n *node) kill() { _ = n.end(syscall.SIGKILL) } // nothing survives it

// stop ends the process in an orderly way; one that does not end is killed, which
// is an error.
func (n *node) stop() error { return n.end(syscall.SIGTERM) }

func (n *node) end(sig syscall.Signal) error {
	n.mu.Lock()
	p := n.process
	n.process = nil
	n.mu.Unlock()
	if p == nil {
		return nil
	}
	p.signal(sig)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
		p.signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("node %s did not end within %v of %v", n.name, stopLimit, sig)
	}
}

// signal is sent to the process, if there is one.
func (n *node) signal(sig syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.signal(sig)
	}
}

// life returns the number of the node's process, which grows with each start.
func (n *node) life() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.generation
}

// close ends the node for good.
func (n *node) close() {
	n.signal(syscall.SIGCONT)
	n.kill()
	for _, w := range n.ways {
		w.close()
	}
	_ = n.clock.Close()
}

// said returns the log from an offset on, and its length.
func (n *node) said(from int) (text string, length int) {
	all, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error(), from
	}
	return string(all[min(from, len(all)):]), len(all)
}

// tail is the end of the log, for messages.
func (n *node) tail() string {
	const enough = 3000
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-enough):]))
}
