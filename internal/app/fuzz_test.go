package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/alarm"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// FuzzSetting: a value means the same as a flag and in the environment. It is taken as
// it stands, or refused by an error that names the key.
func FuzzSetting(f *testing.F) {
	keys := app.Keys()
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
		flag, err := app.Load(app.Input{Environ: home, Flags: map[string][]string{k.Name: {value}}})
		env, envErr := app.Load(app.Input{Environ: append([]string{k.Env() + "=" + value}, home...)})
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
			if again, err := app.Load(app.Input{Environ: home, Flags: map[string][]string{k.Name: s.Values}}); !k.Secret && (err != nil || !reflect.DeepEqual(again.Config, flag.Config)) {
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
		l, err := app.Load(app.Input{Environ: home, File: path})
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
		scheme, servers, folder, name, err := app.FenceURL(text)
		if err == nil {
			written := scheme + "://" + strings.Join(servers, ",") + folder + "/" + name
			s, list, at, n, err := app.FenceURL(written)
			if err != nil || s != scheme || !slices.Equal(list, servers) || at != folder || n != name {
				t.Errorf("%q, written as %q: %v", text, written, err)
			}
		}
		if len(password) < 8 || strings.ContainsAny(password, "@/%\\\"") {
			return
		}
		_, _, _, _, err = app.FenceURL("etcd://user:" + password + "@a:x/n")
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), app.FenceLimit, ""), password) {
			t.Errorf("the password %q is shown: %v", password, err)
		}
	})
}

// FuzzAddress: the identity of a node is an IP and a port, and its own text gives it
// again.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{"", "10.1.1.1", "10.1.1.1:9000", ":9000", "[2001:db8::1]:9000", "2001:db8::1", "::ffff:10.1.1.1", "fe80::1%eth0", "010.1.1.1:1", "10.1.1.1:09", "a:1"} {
		f.Add(text, uint16(8080))
	}
	none := func() ([]app.Interface, error) { return nil, nil }
	f.Fuzz(func(t *testing.T, text string, port uint16) {
		c := app.SnowflakeConfig{Address: text, Force: true}
		identity, err := app.Advertised(c, true, port, none)
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "snowflake.address") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		ap, err := netip.ParseAddrPort(identity)
		if err != nil || ap.Addr().Is4In6() || ap.Addr().Zone() != "" {
			t.Fatalf("%q becomes %q: %v", text, identity, err)
		}
		if again, err := app.Advertised(app.SnowflakeConfig{Address: identity, Force: true}, true, 1, none); ap.Port() != 0 && (err != nil || again != identity) {
			t.Errorf("%q becomes %q, and that %q, %v", text, identity, again, err)
		}
	})
}

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
		_, err := app.Load(app.Input{Environ: home, Flags: map[string][]string{"alarm.webhook": {text}}})
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
		_, err = app.Load(app.Input{Environ: home, Flags: map[string][]string{"alarm.webhook": {with}}})
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), "must be a URL that begins with http:// or https://", ""), token) {
			t.Errorf("the token %q is shown: %v", token, err)
		}
	})
}

// FuzzDecode: an ID that is taken apart can be put together again.
func FuzzDecode(f *testing.F) {
	for _, layout := range append(snowflake.Presets(), "time=40,worker=3,sequence=5,epoch=0", "x") {
		for _, id := range []int64{0, 1, -1, 1541815603606036480, 1<<63 - 1, -1 << 63, 1<<53 - 1} {
			f.Add(layout, id)
		}
	}
	now := time.Now()
	f.Fuzz(func(t *testing.T, layout string, id int64) {
		d, err := app.Decode(layout, id, now)
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("%q, %d: %v", layout, id, err)
			}
			return
		}
		l, err := snowflake.ParseLayout(layout)
		if err != nil {
			t.Fatal(err)
		}
		p := snowflake.Parts{Unit: l.Ceil(d.UnixMilli), Worker: d.Worker, Sequence: d.Sequence}
		if d.Datacenter != nil {
			p.Datacenter = *d.Datacenter
		}
		if got, err := l.Encode(p); d.Time.Before(l.End()) && (err != nil || got != id) {
			t.Errorf("%q: %d is taken apart as %+v, which is %d, %v", layout, id, d, got, err)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Errorf("%q, %d cannot be printed: %v", layout, id, err)
		}
	})
}

// FuzzClockReply: whatever a peer answers, the question ends with a moment after 1970
// or an error, before its deadline.
func FuzzClockReply(f *testing.F) {
	const ok = "HTTP/1.1 200 OK\r\n\r\n"
	for _, reply := range []string{
		ok + `{"unix_ms":1700000000000}`, ok + `{"unix_ms":-1}`, ok + `{"unix_ms":9223372036854775807}`, ok + `{"unix_ms":1e3}`, ok + "null",
		"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n{", "", "SSH-2.0-x\r\n",
	} {
		f.Add([]byte(reply))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	replies, ended := make(chan []byte), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			head := bufio.NewReader(conn)
			for line := ""; line != "\r\n"; {
				if line, err = head.ReadString('\n'); err != nil {
					break
				}
			}
			_, _ = conn.Write(<-replies)
			_ = conn.Close()
		}
	}()
	f.Cleanup(func() {
		if err := ln.Close(); err != nil {
			f.Error(err)
		}
		<-ended
	})
	peer := worker.Peer{Clock: ln.Addr().String()}
	f.Fuzz(func(t *testing.T, reply []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			select {
			case replies <- reply:
			case <-ctx.Done():
			}
		}()
		got, err := app.AskClock(ctx, peer, nil)
		if ctx.Err() != nil || errors.Is(err, io.ErrNoProgress) {
			t.Errorf("%q: %v, %v", reply, err, ctx.Err())
		}
		if err == nil && got.UnixMilli() <= 0 {
			t.Errorf("%q is the time %v", reply, got)
		}
		<-sent
	})
}
