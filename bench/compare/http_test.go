package main

import (
	"testing"
	"time"
)

func TestParseWrk(t *testing.T) {
	t.Parallel()
	const good = `Running 3s test @ http://127.0.0.1:1/
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   205.52us  511.33us   9.42ms   94.90%
  Latency Distribution
     50%   81.00us
     75%  100.00us
     90%  268.00us
     99%    2.81ms
  408010 requests in 3.10s, 62.45MB read
Requests/sec: 131616.53
Transfer/sec:     20.15MB
99.9% 5190us
`
	s, err := parseWrk(good)
	if err != nil || s.rate != 131616.53 || s.total != 408010 || s.p50 != 81*time.Microsecond || s.p99 != 2810*time.Microsecond || s.p999 != 5190*time.Microsecond {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, trouble := range []string{
		"  Socket errors: connect 0, read 5, write 0, timeout 0\n",
		"  Non-2xx or 3xx responses: 7\n",
	} {
		if _, err := parseWrk(good + trouble); err == nil {
			t.Errorf("no error for %q", trouble)
		}
	}
	if _, err := parseWrk("unable to connect"); err == nil {
		t.Error("no error for nonsense")
	}
}
