// Command withservers runs a command beside one MariaDB, PostgreSQL, ZooKeeper
// and etcd server that all tests share:
//
//	go run ./internal/test/cmd/withservers -- go test ./...
//
// The command finds them in LEAF_TEST_MYSQL, LEAF_TEST_POSTGRES,
// LEAF_TEST_ZOOKEEPER and LEAF_TEST_ETCD. A variable that is set already names
// the user's own server, and none is started for it: the first two as a URL,
// mysql://user:password@host:port/name or postgres://…, the others as
// host:port[,host:port]. Where a server is missing it is installed on Debian for
// root, and elsewhere reported; the command then runs without the variable. So are
// the clients of Redis that tests run: redis-cli, redis-py and node-redis.
//
// SIGINT, SIGTERM and SIGHUP go to the command and all it has started; ten
// seconds later, or at the second signal, they are killed. The exit code is the
// command's, 128 plus the signal's number if a signal ended it, and 1 or 2 if it
// could not be run. Its temporary folder is removed after it, and its standard
// input is empty.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(run(os.Args[1:], signals, os.Stdout, os.Stderr))
}

// run is the program; report is for people.
func run(args []string, signals <-chan os.Signal, stdout, report io.Writer) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(report, "usage: withservers -- COMMAND [ARGUMENT ...]")
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	received := make(chan syscall.Signal, 2) // what signals delivers, for the command
	go func() {
		for s := range signals {
			cancel() // ends what precedes the command
			select {
			case received <- s.(syscall.Signal):
			default: // the third one tells nothing new
			}
		}
	}()

	s, err := prepare(ctx, report)
	defer s.close()
	switch {
	case ctx.Err() != nil:
		return 128 + int(<-received)
	case err != nil:
		fmt.Fprintf(report, "withservers: %v\n", err)
		return 1
	}
	return command{args: args, env: s.environment(), stdout: stdout, stderr: report}.run(received)
}
