package server_test

import (
	"context"
	"fmt"
	"os"
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
	i, err := starters[kind](context.Background(), os.Getenv("LEAF_TEST_FOLDER"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, i.Addr())
	select {}
}

var starters = map[string]func(context.Context, string) (*server.Instance, error){
	"mariadb":  server.StartMariaDB,
	"postgres": server.StartPostgres,
}
