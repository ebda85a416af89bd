package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// ordered is a configuration of one of several nodes on the database in dir.
func ordered(t *testing.T, dir string) config.Config {
	t.Helper()
	c := embedded(shortDir(t))
	c.Stores = []string{"sqlite:" + filepath.Join(dir, "one.db")}
	c.StorePrivate, c.Snowflake.Enable, c.Order.Lease = false, false, time.Second
	c.Order.MaxWait = time.Minute // on a busy machine
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
// the IDs are in real-time order, whichever node answered. Clients show a token; nodes speak plain TCP, or TLS, with certificates
// for their addresses or for one name of all.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		secure bool
		host   string // of all certificates
	}{{"plain TCP", false, ""}, {"TLS and client certificates", true, ""}, {"TLS and one name", true, "leaf.internal"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, client := shortDir(t), &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			scheme, files := "http", config.TLS{}
			if c.secure {
				var trust *tls.Config
				if files, trust = certificate(t); c.host != "" {
					files, trust = certificateFor(t, x509.Certificate{DNSNames: []string{c.host}})
					trust.ServerName = c.host
				}
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
					cfg.Order.CA, cfg.Order.ServerName = files.Cert, c.host
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
							if t.Failed() {
								return
							}
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

// TestWaitsForOwnersAreBounded: requests for a tag without an owner are rejected above limit.max-waiting, which a reload
// changes. They are not those that wait for the store.
func TestWaitsForOwnersAreBounded(t *testing.T) {
	t.Parallel()
	cfg := ordered(t, shortDir(t))
	cfg.Order.Lease, cfg.Order.MaxWait = 30*time.Second, time.Second // the first owner begins after the lease
	a, _ := start(t, cfg)
	createStrict(t, a, "order")
	cfg.Limit.MaxWaiting = 1
	if _, err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, 2)
	for range 2 {
		go func() { _, text := get(t, a, "/api/segment/get/order"); answers <- text }()
	}
	if text := <-answers; !strings.Contains(text, "too many requests wait for the owners of tags in strict order") {
		t.Error(text)
	}
	if _, metrics := get(t, a, "/metrics"); !strings.Contains(metrics, "leaf_requests_waiting{mode=\"segment\"} 0\n") {
		t.Error("requests wait for the store")
	}
	<-answers
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

// TestOtherRuleGivesTagsAway: a node finds another tag rule in its database, as one does that was cut off while the rule was
// changed. It issues nothing, and leaves the tags in strict order to nodes that have the rule.
func TestOtherRuleGivesTagsAway(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := ordered(t, dir)
	c.Order.MaxWait, c.Segment.SyncInterval = time.Second, time.Second
	a, _ := start(t, c)
	createStrict(t, a, "order")
	until(t, "the tag is served", func() bool { code, _ := get(t, a, "/api/segment/get/order"); return code == 200 })
	db := openFile(t, filepath.Join(dir, "one.db"))
	weight := func() (weight int64) {
		if err := db.QueryRowContext(t.Context(), "SELECT floor FROM leaf_slot WHERE id < 1024 AND NOT released").Scan(&weight); err != nil {
			t.Fatal(err)
		}
		return weight
	}
	if got := weight(); got == 0 {
		t.Fatalf("weight %d of the node that issues the tag", got)
	}
	execute(t, db, "UPDATE leaf_meta SET value = 'another' WHERE name = 'tag_rule'")
	until(t, "the node gives the tag away", func() bool { return weight() == 0 })
	execute(t, db, "UPDATE leaf_meta SET value = '' WHERE name = 'tag_rule'")
	until(t, "the node takes its share again", func() bool { return weight() > 0 })
}

// TestWrongClockGivesTagsAway: a node whose clock does not fit the row of a tag with a period lets others issue its tags.
func TestWrongClockGivesTagsAway(t *testing.T) {
	t.Parallel()
	cfg := ordered(t, shortDir(t))
	a, _ := start(t, cfg)
	createStrict(t, a, "order")
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.SetTag{Name: "order", Change: segment.Change{Period: new(number.Day)}}); err != nil {
		t.Fatal(err)
	}
	if weight := app.WeightInOrder(a); weight == 0 {
		t.Error("the weight is 0 before the clock is wrong")
	}
	dayAfterTomorrow := (time.Now().Unix()/86400 + 2) << number.PeriodBits
	execute(t, openFile(t, strings.TrimPrefix(cfg.Stores[0], "sqlite:")), fmt.Sprintf("UPDATE leaf_alloc SET max_id = %d", dayAfterTomorrow+1))
	cfg.DataDir = shortDir(t)
	late, _ := start(t, cfg) // reads the row
	awaitStatus(t, late, "/api/segment/get/order", http.StatusServiceUnavailable)
	until(t, "the node has the weight 0", func() bool { return app.WeightInOrder(late) == 0 })
}

// TestRebuiltFenceGivesTagsAway: a node whose fence was made anew issues no tag before its repair. Until then the other node issues
// the tags in strict order.
func TestRebuiltFenceGivesTagsAway(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	broken := ordered(t, dir)
	first, stop := start(t, broken)
	tags := []string{"a", "b", "c", "d"}
	for _, tag := range tags {
		createStrict(t, first, tag)
	}
	second, _ := start(t, ordered(t, dir))
	if code, text := get(t, second, "/api/segment/get/a"); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	stop()
	if err := os.Remove(filepath.Join(broken.DataDir, "fence")); err != nil {
		t.Fatal(err)
	}
	if _, err := app.RebuildFence(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	first, _ = start(t, broken)
	for _, tag := range tags {
		for _, a := range []*app.App{first, second} {
			if code, text := get(t, a, "/api/segment/get/"+tag); code != http.StatusOK {
				t.Errorf("tag %s: %d %s", tag, code, text)
			}
		}
	}
	if weight := app.WeightInOrder(first); weight != 0 {
		t.Errorf("weight %d before the tags are repaired", weight)
	}
	var repairs sync.WaitGroup
	for _, tag := range tags {
		repairs.Go(func() {
			if _, err := manage.Ask(t.Context(), second.Backend(), manage.RepairTag{Name: tag}); err != nil {
				t.Error(err)
			}
		})
	}
	repairs.Wait()
	until(t, "the node takes its share again", func() bool { return app.WeightInOrder(first) > 0 })
}

// TestSequencesAreBounded: what a node keeps of sequences is bounded, because it never drops one.
func TestSequencesAreBounded(t *testing.T) {
	t.Parallel()
	a, _ := start(t, ordered(t, shortDir(t)))
	for n := range 129 {
		name := fmt.Sprint("s", n)
		createStrict(t, a, sequence.RowName(name, sequence.Number(7).Section()))
		code, text := get(t, a, "/v1/sequence/next/"+name+"/7")
		if n < 128 && code != http.StatusOK || n == 128 && (code == http.StatusOK || !strings.Contains(text, "has served 128 sequences")) {
			t.Fatalf("%s: %d %s", name, code, text)
		}
	}
}

// TestSequence: callers ask two nodes for numbers of entities, by HTTP and by batches over gRPC, while one of the nodes
// stops. Each call gets numbers, and those of each entity are in real-time order.
func TestSequence(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	node := func() (*app.App, func(), leafpb.LeafServiceClient) {
		a, stop := start(t, ordered(t, dir))
		conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return a, stop, leafpb.NewLeafServiceClient(conn)
	}
	first, stop, firstGRPC := node()
	if _, err := manage.Ask(t.Context(), first.Backend(), manage.CreateSequence{Name: "chat", Start: 1, Step: 100}); err != nil {
		t.Fatal(err)
	}
	second, _, secondGRPC := node()
	const entities = 20 // in as many sections, of both nodes
	var mu sync.Mutex
	all := map[string][]answered{}
	note := func(entity string, began time.Time, id int64) {
		mu.Lock()
		defer mu.Unlock()
		all[entity] = append(all[entity], answered{began, time.Now(), id})
	}
	load := func(nodes []*app.App, clients []leafpb.LeafServiceClient) {
		var done sync.WaitGroup
		for k := range 4 {
			done.Go(func() {
				for i := range 15 {
					entity, began := fmt.Sprint((7*k+i)%entities), time.Now()
					code, text := get(t, nodes[(k+i)%len(nodes)], "/v1/sequence/next/chat/"+entity)
					id, err := strconv.ParseInt(text, 10, 64)
					if code != http.StatusOK || err != nil {
						t.Errorf("%d %s", code, text)
						return
					}
					note(entity, began, id)

					asked := &leafpb.SequenceRequest{Sequence: "chat"}
					for e := range entities {
						asked.Requests = append(asked.Requests, &leafpb.EntityRequest{Entity: fmt.Sprint(e)})
					}
					began = time.Now()
					said, err := clients[(k+i+1)%len(clients)].Sequence(t.Context(), asked)
					if err != nil {
						t.Error(err)
						return
					}
					for e, r := range said.GetResults() {
						if r.GetError() != nil {
							t.Error(e, r.GetError())
							return
						}
						note(fmt.Sprint(e), began, r.GetRange().GetLo())
					}
				}
			})
		}
		done.Wait()
	}
	load([]*app.App{first, second}, []leafpb.LeafServiceClient{firstGRPC, secondGRPC})
	owners := map[string]bool{} // as the answers name them: each entity has its own
	for end := time.Now().Add(10 * time.Second); len(owners) < 2 && time.Now().Before(end); {
		for e := range entities {
			said, err := secondGRPC.Sequence(t.Context(), &leafpb.SequenceRequest{Sequence: "chat", Requests: []*leafpb.EntityRequest{{Entity: fmt.Sprint(e), Peek: true}}})
			if err != nil {
				t.Fatal(err)
			}
			owners[said.GetRoute().GetOwner()] = true
		}
	}
	if !owners[first.AddrOf("grpc")] || !owners[second.AddrOf("grpc")] {
		t.Errorf("the owners are %v", owners)
	}
	var stopped sync.WaitGroup
	stopped.Go(stop)
	load([]*app.App{second}, []leafpb.LeafServiceClient{secondGRPC})
	stopped.Wait()
	for _, calls := range all {
		inRealTimeOrder(t, calls)
	}
	if len(all) != entities || all["0"][0].id > 4*15 {
		t.Errorf("%d entities, the first answer is %d", len(all), all["0"][0].id)
	}
	for path, want := range map[string]int{"/v1/sequence/next/nosuch/1": http.StatusNotFound, "/v1/sequence/peek/chat/1": http.StatusOK} {
		if code, text := get(t, second, path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if _, text := get(t, second, "/metrics"); !strings.Contains(text, "\nleaf_sequences 1\n") {
		t.Error("a name that is no sequence is kept in memory")
	}
}
