package app_test

import (
	"bytes"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/internal/app"
)

// TestConnectionsWithinOpenFiles: whatever the limit of open files, clients do not get the
// descriptors of files, databases and administration.
func TestConnectionsWithinOpenFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                    string
		files                   uint64
		change                  func(*config.Config)
		http, grpc, resp, admin int64
	}{
		{"no limit", 0, nil, 10_000, 10_000, 10_000, 1000},
		{"infinite", math.MaxUint64, nil, 10_000, 10_000, 10_000, 1000},
		{"enough", 1 << 20, nil, 10_000, 10_000, 10_000, 1000},
		{"too few", 4096, nil, 1102, 1102, 1102, 512},
		{"few", 1024, nil, 206, 206, 206, 128},
		{"hardly any", 100, nil, 16, 16, 16, 16},
		{"in proportion", 4096, func(c *config.Config) { c.HTTP.MaxConns = 20_000; c.RESP.MaxConns = 30 }, 2203, 1101, 16, 512},
		{"what is off takes nothing", 4096, func(c *config.Config) { c.GRPC.Addr, c.RESP.Addr = "off", "off" }, 3308, 0, 0, 512},
		{"small wishes", 1024, func(c *config.Config) { c.HTTP.MaxConns, c.GRPC.MaxConns, c.RESP.MaxConns = 100, 100, 100 }, 100, 100, 100, 128},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := embedded(t.TempDir())
			if tt.change != nil {
				tt.change(&c)
			}
			var log bytes.Buffer
			http, grpc, resp, admin := app.BoundConnections(c, tt.files, func(string) bool { return false }, slog.New(slog.NewTextHandler(&log, nil)))
			if http != tt.http || grpc != tt.grpc || resp != tt.resp || admin != tt.admin {
				t.Errorf("%d %d %d %d; want %d %d %d %d", http, grpc, resp, admin, tt.http, tt.grpc, tt.resp, tt.admin)
			}
			if lowered := c.HTTP.MaxConns > tt.http; lowered != strings.Contains(log.String(), "http.max-conns=") {
				t.Errorf("lowered: %t, and the log says %q", lowered, log.String())
			}
		})
	}
}

// TestLoweredLimitsInTheLog: that a default was lowered is worth knowing; that a limit was
// lowered which an operator has set is a warning.
func TestLoweredLimitsInTheLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files uint64
		set   string
		lines []string
	}{
		{"enough", 1 << 20, "http.max-conns", nil},
		{"defaults", 4096, "", []string{"level=INFO http grpc resp administration"}},
		{"one is set", 4096, "grpc.max-conns", []string{"level=WARN grpc", "level=INFO http resp administration"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			app.BoundConnections(embedded(t.TempDir()), tt.files, func(key string) bool { return key == tt.set }, slog.New(slog.NewTextHandler(&log, nil)))
			var lines []string
			for line := range strings.Lines(log.String()) {
				seen := regexp.MustCompile(`level=\w+`).FindString(line)
				for _, key := range []string{"http.max-conns", "grpc.max-conns", "resp.max-conns", "administration"} {
					if strings.Contains(line, key+"=") {
						seen += " " + strings.TrimSuffix(key, ".max-conns")
					}
				}
				lines = append(lines, seen)
			}
			if !slices.Equal(lines, tt.lines) {
				t.Errorf("%q, want %q; log:\n%s", lines, tt.lines, log.String())
			}
		})
	}
}
