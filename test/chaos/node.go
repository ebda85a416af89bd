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

	"github.com/leaf-idgen/leaf/test/clock"
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
		"serve", "--data-dir", n.dir, "--http-addr", addr, "--admin-addr", "off", // gRPC and RESP are beside it, administration would be on 127.0.0.1
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

// start runs the node and returns when it listens, which it does before its
// servers answer.
func (n *node) start(ctx context.Context) error {
	p, err := launch(n.binary, n.args, append(os.Environ(), n.clock.Env()), n.log)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.process = p
	n.generation++
	n.mu.Unlock()
	return n.await(ctx, time.Minute, "/healthz")
}

// await returns when a path of the node answers 200.
func (n *node) await(ctx context.Context, limit time.Duration, path string) error {
	c := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	err := poll(ctx, limit, func(ctx context.Context) error {
		n.mu.Lock()
		p := n.process
		n.mu.Unlock()
		if p == nil || p.ended() {
			return permanent{errors.New("the process has ended")}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.addr+path, nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", path, resp.Status)
		}
		return nil
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

// tail is the end of the log, for messages.
func (n *node) tail() string {
	const enough = 3000
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-enough):]))
}
