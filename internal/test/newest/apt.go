package newest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	// defaultMirror serves all suites from a host near by.
	defaultMirror = "http://deb.debian.org/debian"
	keyring       = "/usr/share/keyrings/debian-archive-keyring.gpg"
	// attempts is how often the mirror is asked.
	attempts = 3
	// attemptTimeout ends an attempt that makes no progress.
	attemptTimeout = 5 * time.Minute
)

// fetch downloads a package with all that it depends on into folder and returns the
// files.
func (s *Source) fetch(ctx context.Context, pkg, folder string) (packages []string, err error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("%w: apt-get is not on this machine: run the tests on Debian, or leave these servers out", ErrUnavailable)
	}
	if _, err := os.Stat(keyring); err != nil && !s.Unsigned {
		return nil, fmt.Errorf("%w: %w: install the Debian package debian-archive-keyring", ErrUnavailable, err)
	}
	if err := s.configure(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	pause := s.Pause
	for attempt := 1; ; attempt++ {
		err = s.tryFetch(ctx, pkg, folder)
		if err == nil {
			return filepath.Glob(filepath.Join(folder, "*.deb"))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if attempt == attempts {
			return nil, fmt.Errorf("%w: %s of the suite %s of %s, tried %d times: %w\n"+
				"See whether this machine reaches that address (apt-get uses the proxies of /etc/apt and of http_proxy), "+
				"or name another Debian mirror in LEAF_TEST_MIRROR", ErrUnavailable, pkg, s.Suite, s.Mirror, attempts, err)
		}
		s.report("attempt %d of %d failed, the next one is in %v: %v", attempt, attempts, pause, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause *= 2
		s.updated = false // the index may name a file that the mirror has replaced
	}
}

func (s *Source) tryFetch(ctx context.Context, pkg, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if !s.updated {
		s.report("reading the index of %s (%s)", s.Mirror, s.Suite)
		if err := s.aptGet(ctx, "update", "--error-on=any"); err != nil {
			return err
		}
		s.updated = true
	}
	if err := os.MkdirAll(filepath.Join(folder, "partial"), 0o755); err != nil {
		return err
	}
	s.report("fetching %s and what it needs", pkg)
	return s.aptGet(ctx, "-o", "Dir::Cache::archives="+folder, "install", "-y", "--no-install-recommends", "--download-only", pkg)
}

// configure writes what apt-get reads instead of the system's configuration.
func (s *Source) configure(ctx context.Context) error {
	architecture, err := exec.CommandContext(ctx, "dpkg", "--print-architecture").Output()
	if err != nil {
		return fmt.Errorf("ask dpkg for the architecture: %w", err)
	}
	apt := s.apt()
	for _, folder := range []string{"lists/partial", "empty", "cache"} {
		if err := os.MkdirAll(filepath.Join(apt, folder), 0o755); err != nil {
			return err
		}
	}
	option := "signed-by=" + keyring
	if s.Unsigned {
		option = "trusted=yes"
	}
	config := transport(ctx) + fmt.Sprintf(`Dir::Etc::main "%[1]s/empty/none";
Dir::Etc::parts "%[1]s/empty";
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "%[1]s/empty";
Dir::Etc::preferencesparts "%[1]s/empty";
Dir::Etc::preferences "%[1]s/empty/none";
Dir::State "%[1]s";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Log "%[1]s";
APT::Sandbox::User "";
APT::Architecture "%[2]s";
Acquire::Languages "none";
Acquire::Retries "0";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
`, apt, bytes.TrimSpace(architecture))
	return errors.Join(
		os.WriteFile(filepath.Join(apt, "apt.conf"), []byte(config), 0o644),
		os.WriteFile(filepath.Join(apt, "sources.list"), fmt.Appendf(nil, "deb [%s] %s %s main\n", option, s.Mirror, s.Suite), 0o644),
		os.WriteFile(filepath.Join(apt, "status"), []byte(status(string(bytes.TrimSpace(architecture)))), 0o644),
	)
}

func (s *Source) apt() string { return filepath.Join(s.Folder, "apt") }

// progress are the lines of apt-get that are for people.
var progress = regexp.MustCompile(`^(Need to get|Fetched) `)

// aptGet runs apt-get in folders of its own, and reports sizes as they are known. A
// Ctrl-C does not hit it in mid-work.
func (s *Source) aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(s.apt(), "apt.conf"), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var faults, missing bytes.Buffer // exec fills the first while the second is written here
	cmd.Stderr = &faults
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if progress.MatchString(lines.Text()) {
			s.report("  %s", lines.Text())
		}
		if strings.HasPrefix(lines.Text(), "Err:") {
			fmt.Fprintln(&missing, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), bytes.TrimSpace(append(missing.Bytes(), faults.Bytes()...)))
	}
	return nil
}

// transport returns how the system's apt-get reaches mirrors, its proxies above all, and
// whether it accepts a mirror that is not renewed any more.
func transport(ctx context.Context) string {
	dump, _ := exec.CommandContext(ctx, "apt-config", "dump").Output() // without it: directly
	var kept strings.Builder
	for line := range strings.Lines(string(dump)) {
		if strings.HasPrefix(line, "Acquire::http") || strings.HasPrefix(line, "Acquire::Check-") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// systemMirror returns the Debian archive that apt-get of this machine uses.
func systemMirror(ctx context.Context) string {
	list, _ := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").Output()
	for line := range strings.Lines(string(list)) {
		text := strings.TrimSuffix(strings.TrimSpace(line), "/")
		if u, err := url.Parse(text); err == nil && path.Base(u.Path) == "debian" {
			return text
		}
	}
	return defaultMirror
}
