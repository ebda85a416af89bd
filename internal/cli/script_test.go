package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestScripts runs testdata/script. Beside the commands of testscript there are:
//
//	exits CODE COMMAND…   runs a command that must end with this exit code
//	ready DIR             waits until a node runs in the data directory
//	serves DIR            waits until all of its modes issue
//	get DIR PATH          prints status and body of a request to that node
//	operate FILE SQL      runs a statement in an SQLite database, as an operator does
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			// The data directory's socket needs a short path.
			dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(dir) })
			e.Setenv("D", dir)
			e.Setenv("GORACE", noExitSleep)
			e.Vars = append(e.Vars, patient)
			e.Setenv("HOME", filepath.Join(dir, "home"))
			down, err := port.Claim(context.Background())
			if err != nil {
				return err
			}
			e.Defer(down.Release)
			e.Setenv("DOWN", down.Addr())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "ready": ready, "serves": serves, "get": get, "operate": operateScript},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = strconv.Itoa(exit.ExitCode())
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s; stderr: %s", code, args[0], ts.ReadFile("stderr"))
	}
}

func operateScript(ts *testscript.TestScript, _ bool, args []string) {
	if err := runSQL(context.Background(), args[0], args[1]); err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
}

func ready(ts *testscript.TestScript, _ bool, args []string) {
	if _, err := waitForNode(args[0]); err != nil {
		ts.Fatalf("%v", err)
	}
}

func serves(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(waitUntilServing(args[0]))
}

// waitUntilServing waits until all modes of the node in dir issue.
func waitUntilServing(dir string) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		info, err := waitForNode(dir)
		if err != nil || info.Ready && settled(strings.Join(info.Reasons, "\n")) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the node in %s is not ready: %q", dir, info.Reasons)
		}
	}
}

func get(ts *testscript.TestScript, _ bool, args []string) {
	info, err := waitForNode(args[0])
	ts.Check(err)
	status, body, err := httpGet(info.HTTP, args[1])
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s", status, strings.TrimSuffix(body, "\n")+"\n")
}

// waitForNode returns the description of the node in dir, once it answers.
func waitForNode(dir string) (manage.Info, error) {
	client := admin.NewClient(dir)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := manage.Ask(ctx, client, manage.GetInfo{})
		if err == nil {
			return info, nil
		}
		select {
		case <-ctx.Done():
			return manage.Info{}, fmt.Errorf("no node in %s: %w", dir, err)
		case <-tick.C:
		}
	}
}

func httpGet(addr, path string) (status int, body string, err error) {
	tr := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
