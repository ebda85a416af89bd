package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/alarm"
)

// FuzzSetting: a value means the same as a flag and in the environment. It is taken as
// it stands, or refused by an error that names the key.
func FuzzSetting(f *testing.F) {
	keys := config.Keys()
	for i, k := range keys {
		for _, value := range []string{k.Default, "1", "-1", "true", "5s", "a;b", "static", "zookeeper://a:1/n"} {
			f.Add(uint8(i), value)
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, value string) {
		if value == "" || strings.Contains(value, ";") || strings.TrimSpace(value) != value {
			t.Skip() // the environment cannot say that
		}
		k := keys[int(index)%len(keys)]
		flag, err := config.Load(config.Input{Environ: home, Flags: map[string][]string{k.Name: {value}}})
		env, envErr := config.Load(config.Input{Environ: append([]string{k.Env() + "=" + value}, home...)})
		if (err == nil) != (envErr == nil) {
			t.Fatalf("%s=%q: as a flag %v, in the environment %v", k.Name, value, err, envErr)
		}
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), k.Name) && !strings.Contains(err.Error(), "--"+k.Flag()) {
				t.Errorf("%s=%q: %v", k.Name, value, err)
			}
			return
		}
		if !reflect.DeepEqual(flag.Config, env.Config) {
			t.Errorf("%s=%q: as a flag %+v, in the environment %+v", k.Name, value, flag.Config, env.Config)
		}
		for _, s := range flag.Settings() {
			if s.Key != k.Name {
				continue
			}
			// What is shown can be typed in again, but for a password.
			if again, err := config.Load(config.Input{Environ: home, Flags: map[string][]string{k.Name: s.Values}}); !k.Secret && (err != nil || !reflect.DeepEqual(again.Config, flag.Config)) {
				t.Errorf("%s=%q is shown as %q, which gives %v", k.Name, value, s.Values, err)
			}
		}
	})
}

// FuzzLegacy: a leaf.properties file gives a configuration that is valid, with the
// worker IDs that it names and no other, or an error that names the file.
func FuzzLegacy(f *testing.F) {
	const jdbc = "jdbc:mysql://db:3306/leaf"
	f.Add("true", "zk_normal", "zk:2181", "8080", "", jdbc)
	f.Add("true", "local", "", "8080", `{"10.1.46.33:8080":1,"10.1.46.34:8080":2}`, jdbc)
	f.Add("true", "local", "", "", `{"10.1.46.33:8080":null}`, jdbc)
	f.Add("true", "local", "", "", `{"10.1.46.33:8080":1.0}`, "")
	f.Add("true", "local", "", "", `{"10.1.46.33:8080":"1"}`, "")
	f.Add("true", "local", "", "", `{"::ffff:10.1.46.33:8080":1,"10.1.46.33:8080":1}`, "")
	f.Add("true", "mysql", "", "", "", jdbc)
	f.Add("maybe", "zk_recycle", "a,,b:1/x", "99999", "null", "jdbc:h2:mem")
	path := filepath.Join(f.TempDir(), "leaf.properties")
	f.Fuzz(func(t *testing.T, enable, mode, servers, port, workers, url string) {
		text := ""
		for _, p := range [][2]string{
			{"leaf.name", "leaf"},
			{"leaf.snowflake.enable", enable},
			{"leaf.snowflake.mode", mode},
			{"leaf.snowflake.zk.address", servers},
			{"leaf.snowflake.port", port},
			{"leaf.snowflake.local.workIdMap", workers},
			{"leaf.jdbc.url", url},
		} {
			text += escape(p[0]) + "=" + escape(p[1]) + "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Input{Environ: home, File: path})
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "leaf.properties") {
				t.Errorf("%v", err)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Errorf("loaded, and not valid: %v", err)
		}
		var raw map[string]json.RawMessage
		if len(l.Snowflake.WorkerMap) > 0 && json.Unmarshal([]byte(strings.TrimSpace(workers)), &raw) != nil {
			t.Fatalf("worker IDs %q of %q", l.Snowflake.WorkerMap, workers)
		}
		for address, text := range raw {
			var number *int64
			if err := json.Unmarshal(text, &number); len(l.Snowflake.WorkerMap) > 0 && (err != nil || number == nil ||
				!slices.Contains(l.Snowflake.WorkerMap, fmt.Sprintf("%s=%d", address, *number))) {
				t.Errorf("%q gives %q", workers, l.Snowflake.WorkerMap)
			}
		}
	})
}

// FuzzFenceURL: what is read means the same when it is written again, and an error
// shows no password.
func FuzzFenceURL(f *testing.F) {
	for _, text := range []string{
		"zookeeper://a:1,b:2/ids/eu/leaf", "etcd://[::1]:2379/leaf", "etcds://u:p@a:1/n", "etcd://u:p@a:1/x/n", "zookeeper://u:p@a:1/n",
		"etcd://a:0/n", "etcd://a:1/..", "etcd://a:1/n?x", "://", "etcd://a:1",
	} {
		f.Add(text, "hunter2-secret")
	}
	f.Fuzz(func(t *testing.T, text, password string) {
		scheme, servers, folder, name, err := config.FenceURL(text)
		if err == nil {
			written := scheme + "://" + strings.Join(servers, ",") + folder + "/" + name
			s, list, at, n, err := config.FenceURL(written)
			if err != nil || s != scheme || !slices.Equal(list, servers) || at != folder || n != name {
				t.Errorf("%q, written as %q: %v", text, written, err)
			}
		}
		if len(password) < 8 || strings.ContainsAny(password, "@/%\\\"") {
			return
		}
		_, _, _, _, err = config.FenceURL("etcd://user:" + password + "@a:x/n")
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), config.FenceLimit, ""), password) {
			t.Errorf("the password %q is shown: %v", password, err)
		}
	})
}

// FuzzAddress: the identity of a node is an IP and a port, and its own text gives it
// again.
// FuzzWebhookURL: the configuration and the engine agree on what can be posted to,
// and neither shows a path, which may be a token.
func FuzzWebhookURL(f *testing.F) {
	for _, text := range []string{"https://hooks.example/token-token", "http://", "http:///x", "ftp://a/token-token", "https://u:p@h:1/%zz", "HTTPS://a", "http://a b/", "//a"} {
		f.Add(text, "token-token")
	}
	f.Fuzz(func(t *testing.T, text, token string) {
		if text == "" {
			t.Skip() // no webhook
		}
		_, err := config.Load(config.Input{Environ: home, Flags: map[string][]string{"alarm.webhook": {text}}})
		b, engineErr := alarm.New(alarm.Config{Webhook: alarm.Webhook{URL: text}})
		if engineErr == nil {
			_ = b.Close(t.Context())
		}
		if (err == nil) != (engineErr == nil) {
			t.Errorf("%q: the configuration says %v, the engine %v", text, err, engineErr)
		}
		if len(token) < 8 || strings.ContainsAny(token, "/:@") {
			return
		}
		with := "ftp://host/" + token
		_, err = config.Load(config.Input{Environ: home, Flags: map[string][]string{"alarm.webhook": {with}}})
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), "must be a URL that begins with http:// or https://", ""), token) {
			t.Errorf("the token %q is shown: %v", token, err)
		}
	})
}

// FuzzDecode: an ID that is taken apart can be put together again.
// FuzzClockReply: whatever a peer answers, the question ends with a moment after 1970
// or an error, before its deadline.
