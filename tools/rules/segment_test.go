package rules_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// databaseGone: a database is cut off, and the stock of a tag runs out under more callers than
// may wait.
func databaseGone(t *testing.T) {
	c, d := database(t, "order")
	link := through(t, d.Addr())
	c.Stores = []string{d.Via(link.Addr()).URL()}
	c.Limit.MaxWaiting = 8
	var refuses atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(hook.Close)
	c.Alarm.Webhook = hook.URL
	a, _ := start(t, c)
	p := newPrometheus(t, of(a))
	traffic := func() { take(t, a, "/api/segment/get/order", 16) }
	await(t, p, `leaf_segment_ready 1`, traffic)
	await(t, p, `leaf_backend_up{kind="directory",name=""} 1`, nothing)
	p.healthy(func() { take(t, a, "/api/segment/get/order", 1) })

	alerts := []string{"LeafStore", "LeafExhausted", "LeafStockLow", "LeafSegmentNotReady", "LeafRequestsFail", "LeafRequestsSlow", "LeafRequestsRejected", "LeafWebhook"}
	refuses.Store(true)
	cutOff(link)
	p.fire(traffic, alerts...)
	refuses.Store(false)
	if err := link.Accept(); err != nil {
		t.Fatal(err)
	}
	one := func() { take(t, a, "/api/segment/get/order", 1) }
	await(t, p, `leaf_segment_ready 1`, one)
	p.clear(one, alerts...)
}

// rowsBroken: rows are set back, made useless and deleted, and the database says that it
// belongs to another cluster.
func rowsBroken(t *testing.T) {
	c, d := database(t, "order", "row", "a", "b")
	a, _ := start(t, c)
	p := newPrometheus(t, of(a))
	use := func(tags ...string) func() {
		return func() {
			for _, tag := range tags {
				take(t, a, "/api/segment/get/"+tag, 1)
			}
		}
	}
	await(t, p, `leaf_segment_ready 1`, use("order", "row", "a", "b"))
	p.healthy(use("order", "row"))

	exec(t, d, "UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = 'order'")
	exec(t, d, "UPDATE leaf_alloc SET step = 0 WHERE biz_tag = 'row'")
	exec(t, d, "INSERT INTO leaf_tag_option (biz_tag, format) VALUES ('a', '{seq:01}')")
	for _, code := range []string{"regress", "row", "format"} {
		await(t, p, `leaf_alarms_active{code="`+code+`"} 1`, use("order", "row"))
	}
	p.fire(nothing, "LeafRegress", "LeafRow", "LeafFormat")
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.RepairTag{Name: "order"}); err != nil {
		t.Fatal(err)
	}
	exec(t, d, "UPDATE leaf_alloc SET step = 10 WHERE biz_tag = 'row'")
	exec(t, d, "UPDATE leaf_tag_option SET format = '{seq:06}' WHERE biz_tag = 'a'")
	for _, code := range []string{"row", "format"} {
		await(t, p, `leaf_alarms_active{code="`+code+`"} 0`, use("order", "row"))
	}
	p.clear(use("order", "row"), "LeafRegress", "LeafRow", "LeafFormat")

	exec(t, d, "CREATE TABLE kept AS SELECT * FROM leaf_alloc")
	exec(t, d, "DELETE FROM leaf_alloc")
	await(t, p, `leaf_alarms_active{code="vanished"} 1`, nothing)
	p.fire(nothing, "LeafVanished")
	exec(t, d, "INSERT INTO leaf_alloc SELECT * FROM kept")
	await(t, p, `leaf_alarms_active{code="vanished"} 0`, nothing)
	p.clear(nothing, "LeafVanished")

	exec(t, d, "CREATE TABLE meta AS SELECT * FROM leaf_meta")
	exec(t, d, "UPDATE leaf_meta SET value = 'another' WHERE name = 'cluster_id'")
	await(t, p, `leaf_alarms_active{code="rule"} 1`, use("order", "a"))
	p.fire(nothing, "LeafRule")
	exec(t, d, "UPDATE leaf_meta SET value = (SELECT value FROM meta WHERE name = 'cluster_id') WHERE name = 'cluster_id'")
	await(t, p, `leaf_alarms_active{code="rule"} 0`, use("order", "a"))
	p.clear(use("order", "a"), "LeafRule")
}

// filesGone: the disk of a node is full, the node ends, and a file of it is deleted.
func filesGone(t *testing.T) {
	disk := server.OwnDisk(t, 4<<20)
	c, _ := database(t, "order")
	c.DataDir = filepath.Join(disk.Path(), "d")
	a, stop := start(t, c)
	url := of(a)
	p := newPrometheus(t, func() string { return url() })
	traffic := func() { take(t, a, "/api/segment/get/order", 1) }
	await(t, p, `leaf_segment_ready 1`, traffic)
	p.healthy(traffic)

	if err := disk.Fill(); err != nil {
		t.Fatal(err)
	}
	await(t, p, `leaf_alarms_active{code="disk"} 1`, func() { take(t, a, "/api/segment/get/order", 16) })
	p.fire(nothing, "LeafDisk")
	if err := disk.Free(); err != nil {
		t.Fatal(err)
	}
	await(t, p, `leaf_alarms_active{code="disk"} 0`, traffic)
	p.clear(traffic, "LeafDisk")

	stop()
	p.fire(nothing, "LeafDown")
	a, stop = start(t, c)
	url = of(a)
	await(t, p, `leaf_segment_ready 1`, traffic)
	p.clear(traffic, "LeafDown")

	fence := filepath.Join(c.DataDir, "fence")
	if err := os.Rename(fence, fence+".moved"); err != nil {
		t.Fatal(err)
	}
	await(t, p, `leaf_alarms_active{code="file"} 1`, nothing)
	p.fire(nothing, "LeafFile")
	stop()
	c.DataDir = shortDir(t) // the lock of the other one goes with the process
	a, _ = start(t, c)
	url = of(a)
	await(t, p, `leaf_segment_ready 1`, traffic)
	p.clear(traffic, "LeafFile")
}

// limitsReached: clients go beyond a limit, show wrong tokens, and use all connections.
func limitsReached(t *testing.T) {
	c := settings(t)
	c.Auth.Tokens = []string{"a-token-of-the-clients-of-this-test"}
	c.RESP.MaxConns = 4
	a, stop := start(t, c)
	url := of(a)
	p := newPrometheus(t, func() string { return url() })
	askAll := func(token string, n int) {
		for range n {
			ask(t, "http://"+a.Addr()+"/api/segment/get/leaf-segment-test", token)
		}
	}
	right := func() { askAll(c.Auth.Tokens[0], 2) }
	await(t, p, `leaf_segment_ready 1`, right)
	p.healthy(right)

	blocked, free := true, false
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.SetTagLimit{Name: "leaf-segment-test", LimitChange: manage.LimitChange{Blocked: &blocked}}); err != nil {
		t.Fatal(err)
	}
	var open []net.Conn
	for range 4 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", a.AddrOf("resp"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprint(conn, "AUTH "+c.Auth.Tokens[0]+"\r\n")
		if reply, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(reply, "+OK") {
			t.Fatalf("%q, %v", reply, err)
		}
		open = append(open, conn)
	}
	alerts := []string{"LeafLimitReached", "LeafWrongTokens", "LeafAuth", "LeafConnectionsFull"}
	p.fire(func() { right(); askAll("a-token-that-is-not-right-at-all-at-all", 40) }, alerts...)
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.SetTagLimit{Name: "leaf-segment-test", LimitChange: manage.LimitChange{Blocked: &free}}); err != nil {
		t.Fatal(err)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	await(t, p, `leaf_connections{protocol="resp"} 0`, nothing)
	stop() // a minute without a wrong token would end the alarm auth, too
	a, _ = start(t, c)
	url = of(a)
	await(t, p, `leaf_segment_ready 1`, right)
	p.clear(right, alerts...)
}

// coordinatorGone: the server of the cluster fence and the directory is cut off.
func coordinatorGone(t *testing.T) {
	ns := server.Etcd(t)
	c, _ := database(t, "order")
	link := through(t, ns.Servers[0])
	where := "etcd://" + link.Addr() + "/" + strings.ReplaceAll(ns.Root, "/", "-")
	c.Segment.ClusterFence, c.Node.Discovery, c.StorePrivate = where, where, false
	a, _ := start(t, c)
	p := newPrometheus(t, of(a))
	traffic := func() { take(t, a, "/api/segment/get/order", 1) }
	await(t, p, `leaf_segment_ready 1`, traffic)
	await(t, p, `leaf_backend_up{kind="directory",name=""} 1`, traffic)
	p.healthy(traffic)

	cutOff(link)
	await(t, p, `leaf_alarms_active{code="fence"} 1`, traffic)
	await(t, p, `leaf_backend_up{kind="directory",name=""} 0`, traffic)
	p.fire(nothing, "LeafFence", "LeafDirectory")
	if err := link.Accept(); err != nil {
		t.Fatal(err)
	}
	await(t, p, `leaf_alarms_active{code="fence"} 0`, traffic)
	await(t, p, `leaf_backend_up{kind="directory",name=""} 1`, traffic)
	p.clear(traffic, "LeafFence", "LeafDirectory")
}

// certificateEnds: a certificate has a day left, and is exchanged, at first without its key.
func certificateEnds(t *testing.T) {
	c := settings(t)
	dir := t.TempDir()
	c.TLS = certificate(t, dir, 24*time.Hour)
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(t.Context()) })
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := newPrometheus(t, of(a))
	p.fire(nothing, "LeafCertificateExpires")
	certificate(t, dir, 90*24*time.Hour)
	half := c
	half.TLS.Key = certificate(t, t.TempDir(), time.Hour).Key
	if _, err := a.Reload(half); err == nil {
		t.Fatal("a certificate with the key of another one counts")
	}
	p.fire(nothing, "LeafCertificateExpires", "LeafConfiguration")
	if _, err := a.Reload(c); err != nil {
		t.Fatal(err)
	}
	p.clear(nothing, "LeafCertificateExpires", "LeafConfiguration")
}
