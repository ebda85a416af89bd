package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

func FuzzAddress(f *testing.F) {
	for _, text := range []string{"", "10.1.1.1", "10.1.1.1:9000", ":9000", "[2001:db8::1]:9000", "2001:db8::1", "::ffff:10.1.1.1", "fe80::1%eth0", "010.1.1.1:1", "10.1.1.1:09", "a:1"} {
		f.Add(text, uint16(8080))
	}
	none := func() ([]app.Interface, error) { return nil, nil }
	f.Fuzz(func(t *testing.T, text string, port uint16) {
		c := config.Snowflake{Address: text, Force: true}
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
		if again, err := app.Advertised(config.Snowflake{Address: identity, Force: true}, true, 1, none); ap.Port() != 0 && (err != nil || again != identity) {
			t.Errorf("%q becomes %q, and that %q, %v", text, identity, again, err)
		}
	})
}

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
