package main

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// program is something that tests run by themselves, and that is only installed here.
type program struct {
	title  string
	debian []string // the packages to install
	try    []string // a command that succeeds where it is installed
}

// Debian's own interpreter has Debian's modules; a user's may be another one.
var programs = []program{
	{"redis-server", []string{"redis-server"}, []string{"redis-server", "--version"}},
	{"redis-cli and redis-benchmark", []string{"redis-tools"}, []string{"redis-benchmark", "--version"}},
	{"redis-py", []string{"python3-redis"}, []string{"/usr/bin/python3", "-c", "import redis"}},
	{"systemd-analyze", []string{"systemd"}, []string{"systemd-analyze", "--version"}},
	{"groff", []string{"groff-base"}, []string{"groff", "--version"}},
	{"node-redis", []string{"nodejs", "node-redis"}, []string{"node", "-e", "require('redis')"}},
	{"Chromium", []string{"chromium"}, []string{"chromium", "--version"}},
}

// asked is set for the command: a withservers that it starts does not ask for the programs again, which takes half a
// second of the processor.
const asked = "LEAF_TEST_PROGRAMS"

// missingPrograms returns those that are not installed, as kinds without a server.
func missingPrograms(ctx context.Context) (missing []kind) {
	if os.Getenv(asked) != "" {
		return nil
	}
	for _, p := range programs {
		if !p.installed(ctx) {
			missing = append(missing, kind{title: p.title, debian: p.debian})
		}
	}
	return missing
}

func (p program) installed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.try[0], p.try[1:]...)
	cmd.Env = append(os.Environ(), "NODE_PATH=/usr/share/nodejs")
	return cmd.Run() == nil
}
