package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// lastStage are the instructions that make the image, as docker build reads them.
func lastStage(t *testing.T) instructions.Stage {
	t.Helper()
	f, err := os.Open(filepath.Join(built.root, "deploy/docker/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages[len(stages)-1]
}

// image is what the instructions of a stage say.
type image struct {
	base, user, volume string
	env                []string
	command, health    []string
	copied             map[string]string // to from
}

func read(t *testing.T, stage instructions.Stage) image {
	t.Helper()
	i := image{base: stage.BaseName, copied: map[string]string{}}
	for _, c := range stage.Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			i.copied[c.DestPath] = c.SourcePaths[0]
		case *instructions.UserCommand:
			i.user = c.User
		case *instructions.VolumeCommand:
			i.volume = c.Volumes[0]
		case *instructions.EnvCommand:
			for _, e := range c.Env {
				i.env = append(i.env, e.Key+"="+e.Value)
			}
		case *instructions.HealthCheckCommand:
			i.health = c.Health.Test
		case *instructions.EntrypointCommand:
			i.command = slices.Concat(c.CmdLine, i.command)
		case *instructions.CmdCommand:
			i.command = append(i.command, c.CmdLine...)
		case *instructions.ExposeCommand:
		default:
			t.Errorf("this test does not know %s", c.Name())
		}
	}
	return i
}

// TestImage makes the root of the image from the Dockerfile's last stage and runs its
// command there, as the image's user, who can write to the volume only. No container
// runtime is needed; the stages that compile are not run here.
func TestImage(t *testing.T) {
	needsRoot(t)
	i := read(t, lastStage(t))
	if i.base != "scratch" || i.user != "65532:65532" || i.volume != "/data" || i.copied["/usr/bin/leaf"] != "/out/leaf" {
		t.Fatalf("the image: %+v", i)
	}
	if want := []string{"CMD", "/usr/bin/leaf", "status", "--quiet", "--alive"}; !slices.Equal(i.health, want) {
		t.Errorf("the image is healthy when %q succeeds, want %q", i.health, want)
	}
	root := t.TempDir()
	for to := range i.copied {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(to)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(built.programs[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "usr/bin/leaf"), program, 0o755)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(root, "data"), 0o755)
	}
	if err == nil {
		err = os.Chown(filepath.Join(root, "data"), 65532, 65532)
	}
	if err != nil {
		t.Fatal(err)
	}

	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	inside := func(command ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		cmd.Dir, cmd.Env = "/", i.env
		return cmd
	}
	cmd := inside(append(i.command, "--http-addr", addr, "--grpc-addr=off", "--resp-addr=off", "--admin-addr=off")...)
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	body := ask(t, "http://"+addr+"/api/segment/get/leaf-segment-test")
	if out, err := inside(i.health[1:]...).CombinedOutput(); err != nil {
		t.Errorf("the health check of an image that serves: %v\n%s", err, out)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || body != "1" {
		t.Errorf("the image serves %q and ends with %v; its log:\n%s", body, err, log.String())
	}
	if files, err := os.ReadDir(filepath.Join(root, "data/leaf")); err != nil || len(files) < 3 {
		t.Errorf("the volume has %v, %v", files, err)
	}
	if out, err := inside(i.health[1:]...).CombinedOutput(); err == nil {
		t.Errorf("the health check succeeds when the node has ended:\n%s", out)
	}
}

// ask returns the first answer, within 20 seconds.
func ask(t *testing.T, url string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return strings.TrimSpace(string(body))
		}
	}
	return ""
}
