package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// etcd is spoken to by its JSON interface: the client library would add 16
// modules to the test binaries of all rooms.
type etcd struct{}

func (etcd) name() string     { return "etcd" }
func (etcd) variable() string { return "LEAF_TEST_ETCD" }

// ports are those of clients and of peers.
func (etcd) ports() int { return 2 }

func (etcd) install(int, []member) error {
	_, err := find("etcd", "etcd-server")
	return err
}

func (etcd) command(ctx context.Context, n int, members []member) (*exec.Cmd, error) {
	binary, err := find("etcd", "etcd-server")
	if err != nil {
		return nil, err
	}
	name := func(i int) string { return "node-" + strconv.Itoa(i) }
	var cluster []string
	for i, m := range members {
		cluster = append(cluster, name(i)+"=http://"+m.addrs[1])
	}
	m := members[n]
	clients, peers := "http://"+m.addrs[0], "http://"+m.addrs[1]
	return exec.CommandContext(ctx, binary,
		"--name="+name(n), "--data-dir="+filepath.Join(m.dir, "data"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers,
		"--initial-cluster="+strings.Join(cluster, ","),
		// An ensemble that finds another one on a port of its peers must not
		// take it for its own; the folder's name is as random as the ports.
		"--initial-cluster-token="+filepath.Dir(m.dir),
		// Half the default times: a dead leader is missed after half a second, and
		// the shortest lease, 1.5 times that in whole seconds, is 1 s and not 2 s.
		"--heartbeat-interval=50", "--election-timeout=500",
		"--logger=zap", "--log-level=warn",
	), nil
}

// leads asks for the health, which needs a majority, and then for the leader.
func (e etcd) leads(ctx context.Context, addr string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var health struct {
		Health string `json:"health"`
	}
	if err := e.call(ctx, http.MethodGet, addr, "/health", nil, &health); err != nil {
		return false, err
	}
	if health.Health != "true" {
		return false, fmt.Errorf("%s does not serve: health %q", addr, health.Health)
	}
	var status struct {
		Header struct {
			MemberID string `json:"member_id"`
		} `json:"header"`
		Leader string `json:"leader"`
	}
	if err := e.call(ctx, http.MethodPost, addr, "/v3/maintenance/status", struct{}{}, &status); err != nil {
		if strings.Contains(err.Error(), "user name is empty") {
			return true, nil // a password was set: from 3.5 on a stranger is not told who leads
		}
		return false, err
	}
	return status.Leader != "" && status.Leader == status.Header.MemberID, nil
}

func (e etcd) version(ctx context.Context, addr string) (string, error) {
	var version struct {
		Server string `json:"etcdserver"`
	}
	if err := e.call(ctx, http.MethodGet, addr, "/version", nil, &version); err != nil {
		return "", err
	}
	if version.Server == "" {
		return "", fmt.Errorf("%s is no etcd: it tells no version", addr)
	}
	return version.Server, nil
}

// fresh has nothing to create: a key has no parents.
func (e etcd) fresh(_ context.Context, servers []string) (root string, drop func(context.Context) error, err error) {
	root = rootPrefix + strings.ToLower(rand.Text())
	// All keys that begin with root: those below root with its last byte raised.
	end := []byte(root)
	end[len(end)-1]++
	return root, func(ctx context.Context) error {
		var errs []error
		for _, addr := range servers { // any one will do
			err := e.call(ctx, http.MethodPost, addr, "/v3/kv/deleterange", map[string][]byte{"key": []byte(root), "range_end": end}, nil)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return fmt.Errorf("remove %s: %w", root, errors.Join(errs...))
	}, nil
}

// call sends body, if any, and reads the reply into reply, if any.
func (etcd) call(ctx context.Context, method, addr, path string, body, reply any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	// One connection per call: none is left open for the leak checks of tests.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s%s: %w", addr, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s: %s: %s", addr, path, response.Status, bytes.TrimSpace(answer))
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fmt.Errorf("%s%s: %w", addr, path, err)
	}
	return nil
}

func (etcd) stopSignal() syscall.Signal { return syscall.SIGTERM }
