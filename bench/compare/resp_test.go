package main

import (
	"strings"
	"testing"
	"time"
)

const good = "INCR bench: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)\r====== INCR bench ======\n" + `  200000 requests completed in 0.74 seconds

Latency by percentile distribution:
0.000% <= 0.255 milliseconds (cumulative count 16)
50.000% <= 1.319 milliseconds (cumulative count 100032)
99.805% <= 36.831 milliseconds (cumulative count 199616)
99.902% <= 37.311 milliseconds (cumulative count 199808)
100.000% <= 38.559 milliseconds (cumulative count 200000)

Cumulative distribution of latencies:
0.000% <= 0.103 milliseconds (cumulative count 0)
99.936% <= 38.111 milliseconds (cumulative count 199872)

Summary:
  throughput summary: 271002.72 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        2.454     0.248     1.319     6.359    18.415    38.559
`

func TestParseRedisBenchmark(t *testing.T) {
	t.Parallel()
	s, err := parseRedisBenchmark(good)
	if err != nil || s.rate != 271002.72 || s.p50 != 1319*time.Microsecond || s.p99 != 18415*time.Microsecond || s.p999 != 37311*time.Microsecond {
		t.Errorf("got %+v, %v", s, err)
	}
	for name, bad := range map[string]string{
		"nothing":          "",
		"an error reply":   "Error from server: ERR leaf: unknown tag",
		"no throughput":    strings.ReplaceAll(good, "throughput", "x"),
		"not a number":     strings.ReplaceAll(good, "271002.72", "1.2.3"),
		"no p99":           strings.ReplaceAll(good, "p99 ", ""),
		"no step of 99.9%": strings.NewReplacer("99.902", "99.1", "100.000", "99.2", "99.936", "99.3").Replace(good),
	} {
		if _, err := parseRedisBenchmark(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
