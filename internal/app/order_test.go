package app_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/segment"
)

// ordered is a configuration of one of several nodes on the database in dir.
func ordered(t *testing.T, dir string) config.Config {
	t.Helper()
	c := embedded(shortDir(t))
	c.Stores = []string{"sqlite:" + filepath.Join(dir, "one.db")}
	c.StorePrivate, c.Snowflake.Enable, c.Order.Lease = false, false, time.Second
	return c
}

// createStrict creates a tag in strict order.
func createStrict(t *testing.T, a *app.App, tag string) {
	t.Helper()
	row := segment.NewRow{Tag: tag, Start: 1, Step: 10, Options: segment.Options{Order: segment.OrderStrict}}
	var err error
	until(t, "the node has reached its database", func() bool {
		_, err = manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: row})
		return !errors.Is(err, leaf.ErrNotReady)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// answered is one call with its result.
type answered struct {
	began, ended time.Time
	id           int64
}

// inRealTimeOrder fails if a call that began after another had ended has a smaller ID, or the same.
func inRealTimeOrder(t *testing.T, calls []answered) {
	t.Helper()
	for _, early := range calls {
		for _, late := range calls {
			if late.began.After(early.ended) && late.id <= early.id {
				t.Errorf("%d began %v after %d had ended", late.id, late.began.Sub(early.ended), early.id)
			}
		}
	}
}

// TestStrictOrder: callers ask all nodes at once, while a node joins and another one leaves. Each call gets an ID, and
// the IDs are in real-time order, whichever node answered. Clients show a token; nodes speak plain TCP, or TLS.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		secure bool
	}{{"plain TCP", false}, {"TLS and client certificates", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, client := shortDir(t), &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			scheme, files := "http", config.TLS{}
			if c.secure {
				var trust *tls.Config
				files, trust = certificate(t)
				pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
				if err != nil {
					t.Fatal(err)
				}
				trust.Certificates = []tls.Certificate{pair}
				scheme, client.Transport.(*http.Transport).TLSClientConfig = "https", trust
				files.ClientCA = files.Cert
			}
			node := func() (*app.App, func()) {
				cfg := ordered(t, dir)
				cfg.Auth.Tokens = []string{"0123456789abcdef"}
				if cfg.TLS = files; c.secure {
					cfg.Order.CA = files.Cert
				}
				return start(t, cfg)
			}
			ask := func(ctx context.Context, a *app.App) (int64, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+a.Addr()+"/api/segment/get/order", nil)
				if err != nil {
					return 0, err
				}
				req.Header.Set("Authorization", "Bearer 0123456789abcdef")
				resp, err := client.Do(req)
				if err != nil {
					return 0, err
				}
				defer func() { _ = resp.Body.Close() }()
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != http.StatusOK {
					return 0, fmt.Errorf("%d %s, %w", resp.StatusCode, body, err)
				}
				return strconv.ParseInt(string(body), 10, 64)
			}
			first, stop := node()
			createStrict(t, first, "order")
			second, _ := node()
			var all []answered
			var mu sync.Mutex
			load := func(nodes ...*app.App) (wait func()) {
				var done sync.WaitGroup
				for k := range 4 {
					done.Go(func() {
						for i := range 30 {
							began := time.Now()
							id, err := ask(t.Context(), nodes[(k+i)%len(nodes)])
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							all = append(all, answered{began, time.Now(), id})
							mu.Unlock()
						}
					})
				}
				return done.Wait
			}
			load(first, second)()
			wait := load(first, second)
			third, _ := node()
			wait()
			load(third, first, second)()
			wait = load(third, second)
			stop()
			wait()
			inRealTimeOrder(t, all)
			if len(all) != 4*120 {
				t.Errorf("%d calls were answered", len(all))
			}
		})
	}
}

// TestForwardedWithoutTheSecret: a client that says that another node has checked it gets nothing.
func TestForwardedWithoutTheSecret(t *testing.T) {
	t.Parallel()
	cfg := ordered(t, shortDir(t))
	cfg.Auth.Tokens = []string{"0123456789abcdef"}
	a, _ := start(t, cfg)
	createStrict(t, a, "order")
	conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer 0123456789abcdef")
	if _, err := leafpb.NewLeafServiceClient(conn).Next(client, &leafpb.NextRequest{Tag: "order"}); err != nil { // the node has a session then
		t.Fatal(err)
	}
	for _, secret := range []string{"", "0123456789abcdef", strings.Repeat("A", 26)} {
		ctx := metadata.AppendToOutgoingContext(client, "leaf-forwarded", secret)
		if reply, err := leafpb.NewLeafServiceClient(conn).Next(ctx, &leafpb.NextRequest{Tag: "order"}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("with the secret %q: %v, %v", secret, reply, err)
		}
	}
}

// TestStrictOrderWithoutGRPC: a node that the others cannot reach owns no tags, and says why it answers nothing.
func TestStrictOrderWithoutGRPC(t *testing.T) {
	t.Parallel()
	cfg := ordered(t, shortDir(t))
	cfg.GRPC.Addr = config.AddrOff
	a, _ := start(t, cfg)
	createStrict(t, a, "order")
	if code, text := get(t, a, "/api/segment/get/order"); code != http.StatusServiceUnavailable || !strings.Contains(text, "takes no part in it") {
		t.Errorf("%d %s", code, text)
	}
}

// TestLostFileGivesTagsAway: a node that lost a file issues nothing more, so the other one issues its tags in strict order.
func TestLostFileGivesTagsAway(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	broken := ordered(t, dir)
	first, err := app.New(broken, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Stop(context.Background()) }) // it says that nothing can be written any more
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	tags := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, tag := range tags {
		createStrict(t, first, tag)
	}
	second, _ := start(t, ordered(t, dir))
	for _, a := range []*app.App{first, second} {
		if code, text := get(t, a, "/api/segment/get/a"); code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
	}
	if err := os.Remove(filepath.Join(broken.DataDir, "lock")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, first, "/api/segment/get/a", http.StatusServiceUnavailable)
	for _, tag := range tags {
		if code, text := get(t, second, "/api/segment/get/"+tag); code != http.StatusOK {
			t.Fatalf("tag %s: %d %s", tag, code, text)
		}
	}
}
