package server_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/test/server"
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
