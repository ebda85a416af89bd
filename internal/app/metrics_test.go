package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/leafpb"
)

var (
	metricLine = regexp.MustCompile(`^(leaf_[a-z_]+)(\{[a-z]+="([^"\\]|\\.)*"\})? (-?[0-9.e+-]+)$`)
	metricHead = regexp.MustCompile(`^# (HELP|TYPE) (leaf_[a-z_]+) (.+)$`)
)

// TestMetricsAreWellFormed reads the page as Prometheus does: every name is described
// once, before its samples, and counters end in _total.
func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Alarm.Webhook = "http://" + port.Unused(t)
	a, err := app.New(c, app.Options{Version: "v1 \"x\" \\ \n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, a, "/metrics")
	kinds := map[string]string{}
	samples := map[string]bool{}
	current := ""
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "); strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			samples[line[:strings.LastIndexByte(line, ' ')]] = true // the library's own
			continue
		}
		if m := metricHead.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if kinds[m[2]] != "" {
					t.Errorf("%s is described twice", m[2])
				}
				kinds[m[2]], current = m[3], m[2]
			}
			continue
		}
		m := metricLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a sample: %q", line)
		}
		switch kind := kinds[m[1]]; {
		case m[1] != current:
			t.Errorf("%s stands below %s", m[1], current)
		case samples[m[1]+m[2]]:
			t.Errorf("%s%s is there twice", m[1], m[2])
		case (kind == "counter") != strings.HasSuffix(m[1], "_total"):
			t.Errorf("%s is a %s", m[1], kind)
		}
		samples[m[1]+m[2]] = true
	}
	for _, want := range []string{`leaf_build_info{version="v1 \"x\" \\ \n"}`, `leaf_alarms_active{code="clock"}`, "leaf_alarm_webhook_dropped_total", "leaf_snowflake_inner_bound_ahead_seconds", "leaf_http_connections", "leaf_resp_commands_total", "go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
		if !samples[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestMetricsOfTheServers: connections that are open, and what was asked on them.
func TestMetricsOfTheServers(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.RESP.MaxConns = 1
	a, _ := start(t, c)

	var rpc [2]*grpc.ClientConn
	for i := range rpc {
		conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := leafpb.NewLeafServiceClient(conn).Next(t.Context(), &leafpb.NextRequest{Tag: "leaf-segment-test"}); err != nil {
			t.Fatal(err)
		}
		rpc[i] = conn
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", a.AddrOf("resp"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	replies := bufio.NewReader(conn)
	for _, command := range []string{"INCR leaf-segment-test", "INCR nobody", "PING"} {
		if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
			t.Fatal(err)
		}
		if _, err := replies.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if got := redis(t, a, "PING"); !strings.HasPrefix(got, "-ERR max number of clients") {
		t.Errorf("a connection too many: %q", got)
	}
	checkMetrics(t, a,
		"leaf_http_connections 1", // that of the question
		"leaf_grpc_connections 2", "leaf_resp_connections 1", "leaf_resp_connections_accepted_total 1",
		"leaf_resp_connections_refused_total 1", "leaf_resp_commands_total 3", "leaf_resp_errors_total 1",
	)
	for _, c := range rpc {
		_ = c.Close()
	}
	_ = conn.Close()
	checkMetrics(t, a, "leaf_grpc_connections 0", "leaf_resp_connections 0", "leaf_resp_connections_accepted_total 1")
}

// checkMetrics waits for lines of the page: a server learns of an end a little later.
func checkMetrics(t *testing.T, a *app.App, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("/metrics has %q", want), func() bool {
		_, body := get(t, a, "/metrics")
		for _, line := range want {
			if !strings.Contains(body, "\n"+line+"\n") {
				return false
			}
		}
		return true
	})
}

// TestMetricsOfServersThatAreOff are not there.
func TestMetricsOfServersThatAreOff(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.GRPC.Addr, c.RESP.Addr = "off", "off"
	a, _ := start(t, c)
	if _, body := get(t, a, "/metrics"); strings.Contains(body, "leaf_grpc_") || strings.Contains(body, "leaf_resp_") {
		t.Errorf("metrics of servers that are off:\n%s", body)
	}
}
