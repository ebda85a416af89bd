package main

import (
	"bufio"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	last := -1
	for v := uint64(0); v < 1<<40; v += 1 + v/100 {
		b := bucket(v)
		if b < last || v > upper(b) || float64(upper(b)-v) > float64(v)/sub {
			t.Fatalf("%d is in bucket %d, which ends at %d; the one before was %d", v, b, upper(b), last)
		}
		last = b
	}
	if b := bucket(math.MaxInt64); b >= len(newHistogram().counts) {
		t.Errorf("the longest duration is in bucket %d", b)
	}
	h, other := newHistogram(), newHistogram()
	for i := range 1000 {
		if i%2 == 0 {
			h.note(time.Duration(i))
		} else {
			other.note(time.Duration(i))
		}
	}
	h.add(other)
	for q, want := range map[float64]float64{0: 0, 0.5: 500, 0.99: 990, 0.999: 999} {
		if got := float64(h.quantile(q)); got < want || got > want*(1+1.0/sub) {
			t.Errorf("quantile %v = %v, want %v and not much more", q, got, want)
		}
	}
}

// TestServeAndDrive runs every shape on both servers, in this process.
func TestServeAndDrive(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		stdin, stop := io.Pipe()
		lines, stdout := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- serve(name, stdout, stdin) }()
		line, err := bufio.NewReader(lines).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		p := &process{name: name}
		if err := p.connect(strings.TrimSpace(line), 2); err != nil {
			t.Fatal(err)
		}
		for _, shape := range shapes {
			for _, count := range counts {
				h, err := drive(t.Context(), p.clients, shape, count, 20*time.Millisecond)
				if err != nil || h.total == 0 {
					t.Errorf("%s, %s, %d IDs: %d requests, %v", name, shape.name, count, h.total, err)
				}
			}
		}
		for _, conn := range p.conns {
			conn.Close()
		}
		stop.Close()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMedianOfRatios(t *testing.T) {
	t.Parallel()
	var samples []sample
	for round, pair := range [][2]float64{{10, 20}, {30, 30}, {2000, 1000}} { // a noisy machine
		for i, server := range servers {
			samples = append(samples, sample{server: server, shape: "unary", count: 1, round: round, rate: pair[i]})
		}
	}
	if got := ratio(samples, "unary", 1); got != 1 {
		t.Errorf("got %v", got)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rounds", "0"}, {"-conns", "0"}, {"-slice", "1ms"}, {"rest"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("no error for %q", args)
		}
	}
	if err := serve("nobody", io.Discard, strings.NewReader("")); err == nil {
		t.Error("no error for a server that does not exist")
	}
}
