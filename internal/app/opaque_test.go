package app_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/opaque"
)

// TestOpaqueKeys: clients of every protocol get opaque IDs with the keys that are in force. A
// reload exchanges the keys, and refuses those that could make an opaque ID a second time.
func TestOpaqueKeys(t *testing.T) {
	t.Parallel()
	ring, err := opaque.NewRing(63, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := embedded(shortDir(t))
	c.Opaque.Keys = filepath.Join(t.TempDir(), "opaque.keys")
	write := func(r *opaque.Ring) {
		t.Helper()
		if err := os.WriteFile(c.Opaque.Keys, r.Text(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ring)
	a, _ := start(t, c)
	issuedBy := func(key int) {
		t.Helper()
		orders := ring.Tag("leaf-segment-test")
		seen := map[int64]bool{}
		for protocol, text := range takeOpaque(t, a) {
			encoded, err := opaque.Base62.Parse(text)
			if err != nil {
				t.Fatalf("%s: %q: %v", protocol, text, err)
			}
			id, err := orders.Decode(encoded)
			if err != nil || id < 1 || id > 100 || seen[id] || encoded>>61 != int64(key) {
				t.Errorf("%s: %s is ID %d of key %d, %v; want an ID of its own, one of the first, of key %d", protocol, text, id, encoded>>61, err, key)
			}
			seen[id] = true
		}
	}
	issuedBy(0)

	reload := func(next config.Config) app.Reloaded {
		t.Helper()
		r, err := a.Reload(next)
		if err != nil || len(r.Restart) > 0 {
			t.Fatalf("restart %q, %v", r.Restart, err)
		}
		return r
	}
	if r := reload(c); len(r.Changed) > 0 {
		t.Errorf("nothing has changed, and the reload says %v", r.Changed)
	}
	if ring.Issue, err = ring.Add(); err != nil {
		t.Fatal(err)
	}
	write(ring)
	if r := reload(c); !slices.Equal(r.Changed, []config.Difference{{Key: "opaque.keys"}}) {
		t.Errorf("changed %v", r.Changed)
	}
	issuedBy(1)

	other, err := opaque.NewRing(63, 2)
	if err != nil {
		t.Fatal(err)
	}
	write(other)
	if _, err := a.Reload(c); err == nil || !strings.Contains(err.Error(), "key 0 must stay the same") {
		t.Errorf("another key 0: %v", err)
	}
	issuedBy(1)

	none := c
	none.Opaque.Keys = ""
	reload(none)
	if status, body := get(t, a, "/api/segment/get/leaf-segment-test?format=opaque"); status != http.StatusBadRequest || !strings.Contains(body, "opaque.keys") {
		t.Errorf("without keys: %d %s", status, body)
	}
	write(ring)
	reload(c)
	issuedBy(1)
}

// TestOpaqueKeysAfterARestart: a node refuses to start with another key under a version that an
// earlier process of its data directory had.
func TestOpaqueKeysAfterARestart(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Opaque.Keys = filepath.Join(t.TempDir(), "opaque.keys")
	rings := make([]*opaque.Ring, 2)
	for i := range rings {
		r, err := opaque.NewRing(63, 2)
		if err != nil {
			t.Fatal(err)
		}
		rings[i] = r
	}
	write := func(r *opaque.Ring) {
		t.Helper()
		if err := os.WriteFile(c.Opaque.Keys, r.Text(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(want string) {
		t.Helper()
		if _, err := app.New(c, app.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	write(rings[0])
	_, stop := start(t, c)
	stop()
	write(rings[1])
	refused("key 0 must stay the same")
	rings[1].Keys[0], rings[1].Bits = rings[0].Keys[0], 53
	write(rings[1])
	refused("bits must stay 63 and is 53")
	if _, err := rings[0].Add(); err != nil {
		t.Fatal(err)
	}
	write(rings[0])
	_, stop = start(t, c)
	stop()

	kept := filepath.Join(c.DataDir, "opaque.json")
	content, err := os.ReadFile(kept)
	if err != nil || strings.Contains(string(content), hex.EncodeToString(rings[0].Keys[0])) {
		t.Errorf("what is kept: %s, %v; want no key", content, err)
	}
	if err := os.WriteFile(kept, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("remove opaque.json")
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	rings[1].Bits = 63
	rings[1].Keys[0] = bytes.Repeat([]byte{1}, opaque.SecretSize)
	write(rings[1]) // as the text of the refusal says
	start(t, c)
}

// takeOpaque takes an ID in base62 over each protocol.
func takeOpaque(t *testing.T, a *app.App) map[string]string {
	t.Helper()
	texts := map[string]string{}
	status, body := get(t, a, "/api/segment/get/leaf-segment-test?format=opaque-base62")
	if status != http.StatusOK {
		t.Errorf("HTTP: %d %s", status, body)
	}
	texts["HTTP"] = body

	d := net.Dialer{Timeout: 20 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", a.AddrOf("resp"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "LEAF.NEXT leaf-segment-test FORMAT opaque-base62\r\nQUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resp, err := leafpb.NewLeafServiceClient(c).Next(t.Context(), &leafpb.NextRequest{Tag: "leaf-segment-test", Format: "opaque-base62"})
	if err != nil || len(resp.GetTexts()) != 1 {
		t.Fatalf("gRPC: %v, %v", resp, err)
	}
	texts["gRPC"] = resp.GetTexts()[0]
	texts["RESP"], _, _ = strings.Cut(strings.TrimPrefix(string(reply), "$11\r\n"), "\r\n")
	return texts
}

// TestBadOpaqueKeys: a file of keys that cannot be used ends the start, and the error has no key.
func TestBadOpaqueKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := strings.Repeat("ab", opaque.SecretSize)
	for name, tt := range map[string]struct{ content, want string }{
		"none":       {"", "no such file"},
		"short.keys": {"bits 63\nversion-bits 2\nissue 0\nkey 0 " + secret[2:] + "\n", "key 0 has 31 bytes"},
		"issue.keys": {"bits 63\nversion-bits 2\nissue 1\nkey 0 " + secret + "\n", "issue 1: there is no key"},
		"other.keys": {secret, "line 1"},
	} {
		c := embedded(shortDir(t))
		c.Opaque.Keys = filepath.Join(dir, name)
		if tt.content != "" {
			if err := os.WriteFile(c.Opaque.Keys, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := app.New(c, app.Options{})
		if err == nil || !strings.Contains(err.Error(), `opaque.keys="`+c.Opaque.Keys) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), secret[:20]) {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
}
