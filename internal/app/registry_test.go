package app_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/worker"
)

func TestStaticNumber(t *testing.T) {
	t.Parallel()
	type c = config.Snowflake
	cases := []struct {
		name string
		c    c
		host string
		want int64
		err  string
	}{
		{name: "number", c: c{WorkerID: "7"}, want: 7},
		{name: "map", c: c{WorkerMap: []string{"10.0.0.4:8080=3", "10.0.0.5:8080=4"}}, want: 4},
		{name: "map without us", c: c{WorkerMap: []string{"10.0.0.4:8080=3"}}, err: `snowflake.worker-map="10.0.0.4:8080=3": must name this node's address 10.0.0.5:8080`},
		{name: "ordinal", c: c{FromHostname: true}, host: "leaf-12", want: 12},
		{name: "ordinal 0", c: c{FromHostname: true}, host: "leaf-0", want: 0},
		{name: "fully qualified", c: c{FromHostname: true}, host: "leaf-3.leaf.default.svc.cluster-1.local", want: 3},
		{name: "offset", c: c{FromHostname: true, WorkerOffset: 512}, host: "leaf-3", want: 515},
		{name: "negative offset", c: c{FromHostname: true, WorkerOffset: -1}, host: "leaf-1", want: 0},
		{name: "below 0", c: c{FromHostname: true, WorkerOffset: -1}, host: "leaf-0", err: `snowflake.worker-from-hostname="leaf-0": plus snowflake.worker-offset=-1 must be a worker ID within 0-1023, the workers of the layout`},
		{name: "above the layout", c: c{FromHostname: true, WorkerOffset: 1000}, host: "leaf-24", err: "must be a worker ID within 0-1023, the workers of the layout"},
		{name: "no ordinal", c: c{FromHostname: true}, host: "web7", err: `snowflake.worker-from-hostname="web7": must be a host name that ends in a hyphen and a number, such as leaf-0`},
		{name: "an IP address", c: c{FromHostname: true}, host: "ip-10-0-1-12.eu-west-1.compute.internal", err: "must not be made of an IP address"},
		{name: "an IP address alone", c: c{FromHostname: true}, host: "10-0-1-12", err: "must not be made of an IP address"},
		{name: "numbers in the name", c: c{FromHostname: true}, host: "leaf-2-1-0", want: 0},
		{name: "a date in the name", c: c{FromHostname: true}, host: "leaf-2026-11-29-3", want: 3},
		{name: "a random suffix", c: c{FromHostname: true}, host: "leaf-5d4f", err: "must be a host name that ends"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.c.Layout = "leaf"
			got, err := app.StaticNumber(tc.c, "10.0.0.5:8080", tc.host)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %d, %v, want %s", got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}

func TestClockAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, identity, listening, want string }{
		{"on all interfaces", "10.0.0.5:9000", "0.0.0.0:8080", "10.0.0.5:8080"},
		{"on all interfaces of IPv6", "10.0.0.5:8080", "[::]:8080", "10.0.0.5:8080"},
		{"on our address", "10.0.0.5:8080", "10.0.0.5:8080", "10.0.0.5:8080"},
		{"on the loopback only", "10.0.0.5:8080", "127.0.0.1:8080", ""},
		{"on another address", "10.0.0.5:8080", "10.0.0.6:8080", ""},
		{"forced loopback", "127.0.0.1:9000", "127.0.0.1:8080", "127.0.0.1:8080"},
	} {
		if got := app.ClockAddress(tc.identity, netip.MustParseAddrPort(tc.listening)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAskClock(t *testing.T) {
	t.Parallel()
	answer := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/clock" {
			http.NotFound(w, r)
			return
		}
		text := <-answer
		if text == "redirect" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	peer := worker.Peer{Clock: strings.TrimPrefix(s.URL, "http://")}
	answer <- `{"unix_ms":1700000000123}`
	if got, err := app.AskClock(t.Context(), peer, nil); err != nil || got.UnixMilli() != 1700000000123 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "{}", `{"unix_ms":0}`, `{"unix_ms":-5}`, `{"unix_ms":"soon"}`, "redirect", strings.Repeat(" ", 2000) + `{"unix_ms":1}`} {
		answer <- text
		if got, err := app.AskClock(t.Context(), peer, nil); err == nil {
			t.Errorf("%.20q: got %v, want an error", text, got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := app.AskClock(ctx, peer, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a peer that does not answer: got %v", err)
	}
	answer <- "" // lets the handler end
}

func TestDecodeCommand(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d, err := app.Decode("leaf", 1541815603606036480, now)
	want := idtime.Decoded{ID: 1541815603606036480, Time: time.Date(2022, 6, 28, 16, 7, 40, 105e6, time.UTC), UnixMilli: 1656432460105, Worker: 378, Layout: "leaf"}
	if diff := cmp.Diff(want, d); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	d, err = app.Decode("dc", 1541815603606036480, now)
	if err != nil || d.Datacenter == nil || *d.Datacenter != 378>>5 || d.Worker != 378&31 {
		t.Errorf("got %+v, %v", d, err)
	}
	if d, err := app.Decode("leaf", 1<<62+1<<61, now); err != nil || !strings.Contains(d.Warning, "future") {
		t.Errorf("got %+v, %v, want a warning", d, err)
	}
	for _, bad := range []struct {
		layout string
		id     int64
	}{{"leaf", -1}, {"js53", 1 << 53}, {"nope", 1}} {
		if _, err := app.Decode(bad.layout, bad.id, now); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
}
