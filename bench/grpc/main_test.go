package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

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
		p := new(rival)
		if err := p.connect(strings.TrimSpace(line), 2); err != nil {
			t.Fatal(err)
		}
		for _, shape := range shapes {
			for _, count := range counts {
				// On a busy machine the first slice may be over before anybody asked.
				for slice := 20 * time.Millisecond; ; slice *= 2 {
					h, err := drive(t.Context(), p.clients, shape, count, slice)
					if err == nil && h.Total() == 0 && slice < 10*time.Second {
						continue
					}
					if err != nil || h.Total() == 0 {
						t.Errorf("%s, %s, %d IDs: %d requests, %v", name, shape.name, count, h.Total(), err)
					}
					break
				}
			}
		}
		if err := p.disconnect(); err != nil {
			t.Error(err)
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
