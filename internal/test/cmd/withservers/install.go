package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// policyFile is what Debian's packages ask whether they may start a service.
const policyFile = "/usr/sbin/policy-rc.d"

// canInstall reports whether this is a Debian kind of system and we are root.
func canInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// install installs packages by apt-get, and lets them start no service.
func install(ctx context.Context, report io.Writer, packages []string) error {
	begin := time.Now()
	fmt.Fprintf(report, "withservers: not installed: %s; installing by apt-get, about a minute\n", strings.Join(packages, ", "))
	permit, err := forbidServices()
	if err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(packages, ", "), err)
	}
	defer permit()
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "-y", "--no-install-recommends"}, packages...),
	} {
		fmt.Fprintf(report, "withservers: apt-get %s\n", strings.Join(args, " "))
		if err := aptGet(ctx, args); err != nil {
			return err
		}
	}
	fmt.Fprintf(report, "withservers: installed in %v\n", time.Since(begin).Round(time.Second))
	return nil
}

// aptGet runs in a process group of its own: a Ctrl-C asks it to end, and does
// not hit the package manager in mid-work.
func aptGet(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, output)
	}
	return nil
}

// forbidServices makes the packages leave their services alone until permit is
// called. A policy that is there already is somebody's decision and stays.
func forbidServices() (permit func(), err error) {
	f, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(f, "#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(policyFile))
	}
	return func() { _ = os.Remove(policyFile) }, nil
}
