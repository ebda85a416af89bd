package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// parentRole makes this test binary a process that starts a server and then
// waits to be killed: see TestServerDiesWithItsParent.
const parentRole = "LEAF_TEST_SERVER_PARENT"

func TestMain(m *testing.M) {
	if kind := os.Getenv(parentRole); kind != "" {
		beParent(kind)
		return
	}
	goleak.VerifyTestMain(m)
}

func beParent(kind string) {
	s, err := starters[kind](context.Background(), os.Getenv("LEAF_TEST_FOLDER"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, strings.Join(s.addrs, " "))
	select {}
}

// started is any kind of server.
type started struct {
	addrs   []string
	kill    func()
	restart func(context.Context) error
	close   func() error
}

// starters start each kind below a folder.
var starters = map[string]func(context.Context, string) (*started, error){
	"mariadb":   startInstance(server.StartMariaDB),
	"postgres":  startInstance(server.StartPostgres),
	"zookeeper": startEnsemble(server.StartZooKeeper),
	"etcd":      startEnsemble(server.StartEtcd),

	"etcd apart":    startEnsemble(server.StartEtcdApart),
	"mariadb pair":  startPair(server.StartMariaDBPair),
	"postgres pair": startPair(server.StartPostgresPair),
	"galera":        startGalera,
	"disk":          startDisk,
}

// canStart skips the test where this kind cannot be started.
func canStart(t *testing.T, kind string) {
	t.Helper()
	switch kind {
	case "disk":
		server.OwnDisk(t, 1<<20)
	case "etcd apart":
		server.OwnEtcdApart(t, 1)
	default:
		server.Require(t)
	}
}

func startInstance(start func(context.Context, string) (*server.Instance, error)) func(context.Context, string) (*started, error) {
	return func(ctx context.Context, folder string) (*started, error) {
		i, err := start(ctx, folder)
		if err != nil {
			return nil, err
		}
		return &started{[]string{i.Addr()}, i.Kill, i.Restart, i.Close}, nil
	}
}

func startEnsemble(start func(context.Context, string, int) (*server.Ensemble, error)) func(context.Context, string) (*started, error) {
	return func(ctx context.Context, folder string) (*started, error) {
		e, err := start(ctx, folder, 2)
		if err != nil {
			return nil, err
		}
		return &started{
			e.Servers(), func() { e.Kill() },
			func(ctx context.Context) error { return e.Restart(ctx) }, e.Close,
		}, nil
	}
}

func startPair(start func(context.Context, string, server.PairOptions) (*server.Pair, error)) func(context.Context, string) (*started, error) {
	return func(ctx context.Context, folder string) (*started, error) {
		p, err := start(ctx, folder, server.PairOptions{})
		if err != nil {
			return nil, err
		}
		return &started{
			[]string{p.Addr(0), p.Addr(1)},
			func() { p.Kill() },
			func(ctx context.Context) error { return p.Restart(ctx) }, p.Close,
		}, nil
	}
}

func startGalera(ctx context.Context, folder string) (*started, error) {
	g, err := server.StartGalera(ctx, folder, 1)
	if err != nil {
		return nil, err
	}
	return &started{
		[]string{g.Addr(0)},
		func() { g.Kill() },
		func(ctx context.Context) error { return g.Restart(ctx) }, g.Close,
	}, nil
}

func startDisk(ctx context.Context, folder string) (*started, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := server.NewDisk(folder, 1<<20)
	if err != nil {
		return nil, err
	}
	return &started{nil, func() {}, func(context.Context) error { return errors.ErrUnsupported }, d.Close}, nil
}

// onlyLong leaves a test of the test servers to make test-long. It starts servers of its
// own for a minute, and can fail only when this package or a server's version changes.
func onlyLong(t *testing.T) {
	t.Helper()
	if !long.Asked() {
		t.Skip("run make test-long")
	}
}
