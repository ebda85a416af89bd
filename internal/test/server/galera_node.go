package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// galeraPorts are those of one node: for clients, for its peers, and for the two
// ways in which it receives what it missed.
const galeraPorts = 4

// galeraTimeout bounds a start of all: the nodes receive what they missed one
// after the other, by scripts.
const galeraTimeout = 2 * startTimeout

// galeraStart is what a node does first.
type galeraStart int

const (
	join      galeraStart = iota // the primary component of its peers
	bootstrap                    // a new one
	recovery                     // only say how far it has come
)

// galeraLibrary returns where Debian has it, beside the server.
func galeraLibrary() (string, error) {
	binary, err := find("mariadbd", "mariadb-server")
	if err != nil {
		return "", err
	}
	library := filepath.Join(filepath.Dir(filepath.Dir(binary)), "lib/galera/libgalera_smm.so")
	if _, err := os.Stat(library); err != nil {
		return "", fmt.Errorf("%s: %w: install the Debian package galera-4", library, ErrMissing)
	}
	return library, nil
}

func galeraUser() (*syscall.Credential, error) { return serviceUser("mysql", "mariadb-server") }

func galeraCommand(ctx context.Context, n *node, cluster, peers string, how galeraStart, position string) (*exec.Cmd, error) {
	library, err := galeraLibrary()
	if err != nil {
		return nil, err
	}
	if _, err := find("rsync", "rsync"); err != nil {
		return nil, err
	}
	cmd, err := mariaDB{}.command(ctx, n.dir, n.ports[0].Number)
	if err != nil {
		return nil, err
	}
	credential, err := galeraUser()
	if err != nil {
		return nil, err
	}
	// The tool that sends all data to a node that missed too much gives up root by
	// itself, and could then not read the data.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	cmd.Args = slices.DeleteFunc(cmd.Args, func(s string) bool { return s == "--user=root" })
	cmd.Args = append(cmd.Args,
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		"--loose-plugin-wsrep-provider=OFF", // from 11.4 on; it would forbid Isolate
		"--wsrep-on=ON", "--wsrep-provider="+library,
		"--wsrep-cluster-name="+filepath.Base(cluster), // as random as the ports
		"--wsrep-cluster-address=gcomm://"+peers,
		"--wsrep-node-address="+n.ports[1].Addr(),
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address="+n.ports[3].Addr(),
		"--wsrep-provider-options="+strings.Join([]string{
			"gmcast.listen_addr=tcp://" + n.ports[1].Addr(),
			"ist.recv_addr=" + n.ports[2].Addr(),
			"gcache.size=16M",
			// Shorter than the default times: a dead node is missed after 3 s.
			"evs.keepalive_period=PT0.5S", "evs.inactive_check_period=PT0.2S",
			"evs.suspect_timeout=PT3S", "evs.inactive_timeout=PT5S", "evs.install_timeout=PT5S",
		}, ";"),
	)
	switch how {
	case bootstrap:
		cmd.Args = append(cmd.Args, "--wsrep-new-cluster")
	case recovery:
		cmd.Args = append(cmd.Args, "--wsrep-recover")
	case join:
	}
	if position != "" {
		cmd.Args = append(cmd.Args, "--wsrep-start-position="+position)
	}
	return cmd, nil
}

// galeraPosition is how far a node has come: the number of its last transaction,
// in the history that its group began with.
type galeraPosition struct {
	history string
	number  int64
}

var positionLine = regexp.MustCompile(`Recovered position: ?([0-9a-f-]{36}):(-?\d+)`)

// stateLines match no -1, which stands there while the node runs.
var stateLines = regexp.MustCompile(`uuid: +([0-9a-f-]{36})\nseqno: +(\d+)\n`)

func parsePosition(output []byte) (galeraPosition, error) {
	m := positionLine.FindSubmatch(output)
	if m == nil {
		return galeraPosition{}, fmt.Errorf("the server tells no position: %s", bytes.TrimSpace(output))
	}
	number, err := strconv.ParseInt(string(m[2]), 10, 64)
	if err != nil {
		return galeraPosition{}, fmt.Errorf("position: %w", err)
	}
	return galeraPosition{string(m[1]), number}, nil
}

// argument is what a node is told when it starts: after a crash it does not know
// by itself, and would ask for all data.
func (p galeraPosition) argument() string {
	if p.number < 0 {
		return ""
	}
	return p.history + ":" + strconv.FormatInt(p.number, 10)
}

// cleanPosition returns the position that an orderly end has written down.
func cleanPosition(dir string) (p galeraPosition, ok bool) {
	state, _ := os.ReadFile(filepath.Join(dir, "data", "grastate.dat"))
	m := stateLines.FindSubmatch(state)
	if m == nil {
		return galeraPosition{}, false
	}
	number, err := strconv.ParseInt(string(m[2]), 10, 64)
	return galeraPosition{string(m[1]), number}, err == nil
}

// mostAdvanced returns the node that has all that any of them committed.
func mostAdvanced(positions []galeraPosition) (node int) {
	for i, p := range positions {
		if p.number > positions[node].number {
			node = i
		}
	}
	return node
}

// markSafe lets a node begin a new component although it was not the last one
// that was stopped.
func markSafe(dir string) error {
	path := filepath.Join(dir, "data", "grastate.dat")
	state, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has never belonged to any
	}
	if err != nil {
		return err
	}
	state = bytes.Replace(state, []byte("safe_to_bootstrap: 0"), []byte("safe_to_bootstrap: 1"), 1)
	return os.WriteFile(path, state, 0o600)
}

// chownAll gives a folder with all that is in it to the user of the servers, if
// that is another one.
func chownAll(owner *syscall.Credential, dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return chown(owner, path)
	})
}
