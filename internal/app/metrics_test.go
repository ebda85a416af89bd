package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/segment"
)

// TestMetricsAreWellFormed reads the page as Prometheus does, with a version that needs escapes.
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
	metricsOf(t, body)
	samples := map[string]bool{}
	for line := range strings.Lines(body) {
		if at := strings.LastIndexByte(line, ' '); line[0] != '#' {
			samples[line[:at]] = true
		}
	}
	for _, want := range []string{`leaf_build_info{version="v1 \"x\" \\ \n"}`, `leaf_alarms_active{code="clock"}`, "leaf_alarm_webhook_dropped_total", "leaf_snowflake_inner_bound_ahead_seconds", `leaf_connections{protocol="http"}`, `leaf_requests_total{mode="segment",protocol="grpc",result="exhausted"}`, "leaf_resp_commands_total", "go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
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
		`leaf_connections{protocol="http"} 1`, // that of the question
		`leaf_connections{protocol="grpc"} 2`, `leaf_connections{protocol="resp"} 1`, "leaf_resp_connections_accepted_total 1",
		`leaf_connections_refused_total{protocol="resp"} 1`, "leaf_resp_commands_total 3", "leaf_resp_errors_total 1",
		`leaf_connections_limit{protocol="resp"} 1`,
		`leaf_requests_total{mode="segment",protocol="grpc",result="ok"} 2`, `leaf_requests_total{mode="segment",protocol="resp",result="ok"} 1`,
		`leaf_requests_total{mode="segment",protocol="resp",result="unknown_tag"} 1`, `leaf_ids_issued_total{mode="segment",protocol="grpc"} 2`,
	)
	for _, c := range rpc {
		_ = c.Close()
	}
	_ = conn.Close()
	checkMetrics(t, a, `leaf_connections{protocol="grpc"} 0`, `leaf_connections{protocol="resp"} 0`, "leaf_resp_connections_accepted_total 1")
}

// checkMetrics waits for lines of the page: a server learns of an end a little later.
func checkMetrics(t *testing.T, a *app.App, want ...string) {
	t.Helper()
	until(t, fmt.Sprintf("/metrics has %q", want), func() bool {
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
	if _, body := get(t, a, "/metrics"); strings.Contains(body, `"grpc"`) || strings.Contains(body, "resp") {
		t.Errorf("metrics of servers that are off:\n%s", body)
	}
}

// TestMetricsOfManyTags: a page is as long with many tags as with few.
func TestMetricsOfManyTags(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Snowflake.Enable = false
	c.Metrics.Tags = 3
	a, _ := start(t, c)
	lines := 0
	for i := range 12 {
		tag := fmt.Sprintf("tag-%d", i)
		if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: tag, Start: 1, Step: 10}}); err != nil {
			t.Fatal(err)
		}
		if status, body := get(t, a, "/api/segment/get/"+tag); status != 200 {
			t.Fatal(body)
		}
		_, body := get(t, a, "/metrics")
		if want := fmt.Sprintf("\nleaf_tags_in_use %d\n", i+1); !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
		if i == 4 { // three with a name, and the rest
			lines = strings.Count(body, "\nleaf_")
		}
		if got := strings.Count(body, "\nleaf_"); i > 4 && got != lines {
			t.Errorf("%d samples with %d tags, %d with 5", got, i+1, lines)
		}
	}
}
