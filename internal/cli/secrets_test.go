package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// secretKeys are the keys whose values may hold a secret.
func secretKeys() map[string]config.Key {
	keys := map[string]config.Key{}
	for _, k := range config.Keys() {
		if k.Secret {
			keys[k.Name] = k
		}
	}
	return keys
}

// TestSecretsInArguments goes over all flags of all commands, and the argument of each, with a URL
// that has a password. No output shows the password, whatever the flag is for. Where a flag takes such a value, the command warns, and has
// another flag that takes it from a file.
func TestSecretsInArguments(t *testing.T) {
	t.Parallel()
	const planted = "mysql://leaf:hunter2@127.0.0.1:1/leaf"
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is to be opened
	home := dataDir(t)
	run := func(args ...string) string {
		var out bytes.Buffer
		p := cli.Process{Args: args, Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + home}}
		cli.Run(ctx, p)
		if strings.Contains(out.String(), "hunter2") {
			t.Errorf("leaf %s shows the password:\n%s", strings.Join(args, " "), out.String())
		}
		return out.String()
	}
	commands, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	secrets, flags := secretKeys(), 0
	for _, c := range commands {
		name := strings.Join(c.Path, " ")
		if name == "serve" {
			continue // has the flags of config check; TestSecretsOfANode is about it
		}
		base := c.Path
		for _, f := range c.Flags {
			if f.Required {
				value := "1"
				if isPath(f) {
					value = filepath.Join(home, "file")
				}
				base = append(slices.Clone(base), "--"+f.Name+"="+value)
			}
		}
		run(append(slices.Clone(base), planted)...)
		base = append(slices.Clone(base), c.Args...)
		var others, secret []string // flags of keys
		var warnings []string
		for _, f := range c.Flags {
			arg := "--" + f.Name + "=" + planted
			switch {
			case isPath(f):
				continue // a path is shown as it is
			case f.Key != "" && secrets[f.Key].Name == "":
				others = append(others, arg)
				continue
			case f.Key != "" || f.Name == "leave-out" || f.Name == "from" && name != "decode": // there it is a time
				secret = append(secret, arg)
				warnings = append(warnings, "--"+f.Name+" has a secret, and other users of this machine may read the arguments of a process; use --"+f.Name+"-file FILE")
				if !slices.ContainsFunc(c.Flags, func(other cli.CommandFlag) bool { return other.Name == f.Name+"-file" }) {
					t.Errorf("leaf %s has no --%s-file", name, f.Name)
				}
			default:
				run(append(slices.Clone(base), arg)...)
			}
			flags++
		}
		if out := run(append(slices.Clone(base), secret...)...); name != "config check" {
			for _, warning := range warnings {
				if !strings.Contains(out, "leaf: warning: "+warning) {
					t.Errorf("leaf %s does not say %q:\n%s", name, warning, out)
				}
			}
		}
		if name == "config check" { // which says all that is wrong, and has the flags of all keys
			run(append(slices.Clone(base), others...)...)
			run(append(slices.Clone(base), "--node-zone="+planted, "--snowflake-name="+planted)...)
		}
	}
	if flags < 80 {
		t.Errorf("only %d flags were tried", flags)
	}
}

func isPath(f cli.CommandFlag) bool {
	return slices.Contains([]string{"FILE", "FOLDER", "DIR"}, f.Hint)
}

// TestExposedFilesInArguments: a command warns of a file of secrets that its arguments name and that
// other users may read, and of no other.
func TestExposedFilesInArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte("mysql://leaf:hunter2@127.0.0.1:1/leaf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is to be opened
	commands, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, mode := range []os.FileMode{0o600, 0o604} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			name := strings.Join(c.Path, " ")
			if name == "serve" || name == "config check" {
				continue // which say so of their whole configuration
			}
			for _, f := range c.Flags {
				once := fmt.Sprint(mode, cmp.Or(f.Key, name+f.Name)) // all commands have the flag of a key from one list
				if f.Hint != "FILE" || flags[once] {
					continue
				}
				secret := strings.HasSuffix(f.Name, "-file") || slices.Contains([]string{"tls-key", "opaque-keys", "keys"}, f.Name)
				flags[f.Name], flags[once] = true, true
				args := slices.Clone(c.Path)
				for _, other := range c.Flags {
					if other.Required && other.Name != f.Name {
						args = append(args, "--"+other.Name+"=1")
					}
				}
				var out bytes.Buffer
				cli.Run(ctx, cli.Process{Args: append(append(args, "--"+f.Name+"="+file), c.Args...), Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + dir}})
				warning := "leaf: warning: " + file + " holds secrets, and other users of this machine may read it"
				if got, want := strings.Contains(out.String(), warning), secret && mode != 0o600; got != want || strings.Contains(out.String(), "hunter2") {
					t.Errorf("leaf %s --%s with mode %o:\n%s", name, f.Name, mode, &out)
				}
			}
		}
	}
	for _, name := range []string{"from-file", "leave-out-file", "admin-token-file", "auth-token-file", "store-file", "keys", "endpoint-ca"} {
		if !flags[name] {
			t.Errorf("no command has --%s", name)
		}
	}
}

// TestSecretsOfANode plants a secret in every key that may hold one, and looks at everything that
// a node shows whose servers do not answer.
func TestSecretsOfANode(t *testing.T) {
	t.Parallel()
	const planted = "hunter2-hunter2-hunter2-hunter2-hunter2"
	down := port.Unused(t)
	values := map[string]string{
		"store":                      "mysql://leaf:" + planted + "@" + down + "/leaf",
		"snowflake.registry-address": "http://leaf:" + planted + "@" + down,
		"segment.cluster-fence":      "etcd://leaf:" + planted + "@" + down + "/leaf",
		"node.discovery":             "etcd://leaf:" + planted + "@" + down + "/leaf",
		"alarm.webhook":              "http://leaf:" + planted + "@" + down + "/" + planted + "?key=" + planted,
		"trace.url":                  "http://leaf:" + planted + "@" + down + "/" + planted + "?key=" + planted,
		"auth.token":                 planted + "-client",
		"admin.token":                planted + "-admin",
	}
	dir, files := dataDir(t), t.TempDir()
	yaml := filepath.Join(files, "leaf.yaml")
	text := "reload-interval: 0s\nlog: {level: debug, access: true}\nhttp: {console: true}\nadmin: {addr: \"127.0.0.1:0\"}\nsnowflake: {registry: etcd, address: 127.0.0.1, force-address: true}\n"
	write := func(more string) {
		t.Helper()
		if err := os.WriteFile(yaml, []byte(text+more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string
	for name, k := range secretKeys() {
		if values[name] == "" {
			t.Fatalf("%s has no secret in this test", name)
		}
		file := filepath.Join(files, name)
		if err := os.WriteFile(file, []byte(values[name]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "alarm.webhook" {
			flags = append(flags, "--"+k.Flag()+"="+values[name]) // of which the log warns
		} else {
			flags = append(flags, "--"+k.Flag()+"-file="+file)
		}
	}
	write("")
	p := serve(t, dir, append(flags, "--config", yaml)...)
	p.await(t, "--alarm-webhook has a secret, and other users of this machine may read the arguments of a process")
	p.await(t, "an alarm was not delivered")

	shown := map[string]string{}
	info, err := waitForNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"", planted + "-wrong", values["auth.token"], values["admin.token"]} {
		for _, url := range []string{"http://" + info.HTTP, "http://" + info.Admin} {
			for _, path := range []string{"/readyz", "/metrics", "/cache", "/db", "/api/segment/get/order", "/v1/nodes"} {
				shown[url+path+" with "+token] = showTo(t, http.MethodGet, url+path, "", http.Header{"Authorization": {"Bearer " + token}})
			}
		}
	}
	session := showTo(t, http.MethodPost, "http://"+info.Admin+"/console/api/login", `{"token":"`+values["admin.token"]+`"}`, http.Header{"X-Leaf-Console": {"1"}})
	cookie := regexp.MustCompile(`(?i)Set-Cookie: ([^;]+);`).FindStringSubmatch(session)
	if cookie == nil {
		t.Fatalf("no session of the console: %s", session)
	}
	for _, page := range []string{"session", "overview", "tags", "rows", "snowflake", "workers", "cluster", "history"} {
		text := showTo(t, http.MethodGet, "http://"+info.Admin+"/console/api/"+page, "", http.Header{"Cookie": {cookie[1]}})
		if strings.Contains(text, " 401 ") || strings.Contains(text, " 404 ") {
			t.Errorf("the page %s of the console: %s", page, text)
		}
		shown["the page "+page+" of the console"] = text
	}
	write("segment: {cluster-fence: \"etcd://leaf:" + planted + "@\", max-wait: \"etcd://leaf:" + planted + "@h/x\"}\n")
	for _, command := range []string{"status", "status --json", "config check --diff", "config check --diff --json", "reload", "tag list", "node list", "audit", "next order", "worker list", "limit list"} {
		var out bytes.Buffer
		cli.Run(t.Context(), cli.Process{Args: append(strings.Fields(command), "--data-dir", dir), Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + files}})
		shown[command] = out.String()
	}
	for _, command := range []string{"config check", "config check --json"} {
		var out bytes.Buffer
		write("")
		if code := cli.Run(t.Context(), cli.Process{Args: append(append(strings.Fields(command), flags...), "--config", yaml, "--data-dir", dir), Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + files}}); code != 0 {
			t.Errorf("%s: exit code %d: %s", command, code, out.String())
		}
		shown[command] = out.String()
	}
	p.end(t, syscall.SIGKILL)
	shown["the log"] = p.log.String()
	for what, text := range shown {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s shows a secret:\n%s", what, text)
		}
		if text == "" {
			t.Errorf("%s shows nothing", what)
		}
	}
}

// showTo returns the whole reply to a request.
func showTo(t *testing.T, method, url, body string, header http.Header) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	if err := resp.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
