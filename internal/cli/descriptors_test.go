package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestIdleConnections: clients that connect and say nothing, more of them than the process
// may have files, take nothing from files, databases, administration and health checks.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := serveAs(t, dir, "sh", "-c", `ulimit -n 512; exec leaf serve --data-dir "$0" --http-addr 127.0.0.1:0 --snowflake-renew-interval 100ms`, dir)
	waitReady(t, p)
	p.await(t, "the limit of open files lowers the limits of connections")
	info, err := waitForNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	dialed := func(addr string) net.Conn {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return nil
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	kept := dialed(info.HTTP)
	if kept == nil {
		t.Fatal("no connection")
	}
	in := bufio.NewReader(kept)
	ask := func(path string) {
		_ = kept.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(kept, "GET %s HTTP/1.1\r\nHost: leaf\r\n\r\n", path)
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v; log:\n%s", path, err, p.log)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	ask("/api/snowflake/get/x") // a connection that has sent no request is closed after some seconds
	for range 250 {
		for _, addr := range []string{info.HTTP, info.GRPC, info.RESP} {
			dialed(addr)
		}
	}
	for range 5 { // more than a range holds
		ask("/api/segment/get/leaf-segment-test?count=5000")
		ask("/api/snowflake/get/x?count=5000")
	}
	for _, path := range []string{"/healthz", "/readyz?mode=segment", "/readyz?mode=snowflake", "/metrics"} {
		if status, body, err := httpGet(info.Admin, path); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d %.100s, %v", path, status, body, err)
		}
	}
	if strings.Contains(p.log.String(), "too many open files") {
		t.Errorf("it ran out of files:\n%s", p.log)
	}
	p.end(t, syscall.SIGTERM)
}
