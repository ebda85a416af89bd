package sqldb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestSearchPathIsDropped: a pooler that drops the search_path of the URL leads to the tables of
// another schema, perhaps another cluster's. Nothing works there, and the error says what to do.
func TestSearchPathIsDropped(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	execAll(t, d.Open(t), "CREATE SCHEMA own")
	applySchema(t, d.URL()) // of the other cluster
	u, err := url.Parse(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	with := func(host, path string) string {
		way := *u
		way.Host = host
		query := way.Query()
		query.Set("search_path", path)
		query.Set("sslmode", "disable")
		way.RawQuery = query.Encode()
		return way.String()
	}
	for _, path := range []string{"own", "none, own", `"own",public`} {
		applySchema(t, with(u.Host, path))
		if err := open(t, with(u.Host, path)).Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
			t.Errorf("search_path=%s: %v", path, err)
		}
	}

	pooler := startPooler(t, u.Host, poolWithoutPath)
	s, claims := open(t, with(pooler, "own")), openRecords(t, with(pooler, "own"))
	for what, call := range map[string]func() error{
		"Bind":      func() error { return s.Bind(t.Context(), segment.Binding{Store: "default"}) },
		"Namespace": func() error { _, err := claims.Namespace(t.Context(), nil); return err },
		"Create":    func() error { return s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}) },
		"schema":    func() error { _, err := s.ApplySchema(t.Context()); return err },
	} {
		if err := call(); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "ALTER ROLE ... SET search_path = own") {
			t.Errorf("%s behind a pooler that drops the search_path: %v; want a refusal that says what to do", what, err)
		}
	}
	// What the refusal says helps also where the URL has capital letters, which PostgreSQL folds.
	execAll(t, d.Open(t), fmt.Sprintf(`ALTER ROLE CURRENT_USER IN DATABASE %q SET search_path = Own`, strings.TrimPrefix(u.Path, "/")))
	if err := open(t, with(pooler, "Own")).Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
		t.Errorf("search_path=Own after ALTER ROLE ... SET search_path = Own: %v", err)
	}
	if err := open(t, with(pooler, `"Own"`)).Bind(t.Context(), segment.Binding{Store: "default"}); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("another schema, with a capital letter: %v; want a refusal", err)
	}
}

// poolWithoutPath drops the search_path with which a session begins, as pgbouncer does with
// ignore_startup_parameters, and passes everything else on.
func poolWithoutPath(client net.Conn, target string) {
	defer client.Close()
	var size uint32
	if binary.Read(client, binary.BigEndian, &size) != nil || size < 8 || size > 1<<16 {
		return
	}
	begin := make([]byte, size-4)
	if _, err := io.ReadFull(client, begin); err != nil {
		return
	}
	upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer upstream.Close()
	for _, path := range []string{"own", "Own", `"Own"`} {
		begin = bytes.Replace(begin, []byte("\x00search_path\x00"+path+"\x00"), []byte{0}, 1)
	}
	if _, err := upstream.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(begin)+4)), begin...)); err != nil {
		return
	}
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, upstream)
	}()
	_, _ = io.Copy(upstream, client)
}

// TestVariablesOfPostgres: PGOPTIONS and a service file set a session otherwise than the URL says, on one node or for
// one command alone: they may lead to the tables of another schema, or take the wait for a commit away.
func TestVariablesOfPostgres(t *testing.T) {
	services := filepath.Join(t.TempDir(), "services")
	if err := os.WriteFile(services, []byte("[path]\nsearch_path=other\n[user]\nuser=me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", services)
	for _, tt := range []struct{ variable, value, url, set string }{
		{"PGOPTIONS", "-c synchronous_commit=off", "postgres://u@h/leaf", "options"},
		{"PGOPTIONS", "-c search_path=other", "postgres://u@h/leaf?search_path=own", "options"},
		{"PGSERVICE", "path", "postgres://u@h/leaf", "search_path"},
		{"PGSERVICE", "path", "postgres://u@h/leaf?search_path=own", ""},
		{"PGSERVICE", "user", "postgres://h/leaf", ""},
		{"PGTZ", "UTC", "postgres://u@h/leaf", ""},
		{"PGAPPNAME", "ids", "postgres://u@h/leaf", ""},
		{"PGPASSWORD", "secret", "postgres://u@h/leaf", ""},
	} {
		t.Run(tt.variable+" "+tt.value, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)
			s, err := sqldb.Open(tt.url, sqldb.Config{})
			if err == nil {
				err = s.Close()
			}
			if tt.set == "" && err != nil || tt.set != "" && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "sets "+tt.set+" of its sessions")) {
				t.Errorf("%s: %v; want a refusal because of %q", tt.url, err, tt.set)
			}
		})
	}
}
