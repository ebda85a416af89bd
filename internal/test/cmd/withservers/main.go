// Command withservers runs a command beside one MariaDB, MySQL, PostgreSQL, ZooKeeper
// and etcd server that all tests share:
//
//	go run ./internal/test/cmd/withservers -- go test ./...
//	go run ./internal/test/cmd/withservers -newest mysql,mariadb,postgres,zookeeper,etcd,redis -- go test ./...
//
// The servers are those of the machine's release, except those that -newest names: the
// newest versions of these are fetched from Debian's suite "unstable" into a folder of
// their own (package newest says where) and put in front of PATH, for the command, too.
// The default is -newest mysql, because Debian's releases have no MySQL. With -mysql
// the server of LEAF_TEST_MYSQL is MySQL and not MariaDB. If the mirror cannot be
// reached, withservers fails where CI=true; elsewhere it says so and runs the command
// without those servers. LEAF_TEST_MIRROR names another mirror, LEAF_TEST_SERVERS
// another folder.
//
// The command finds the servers in LEAF_TEST_MYSQL, LEAF_TEST_MYSQL_NEWEST,
// LEAF_TEST_POSTGRES, LEAF_TEST_ZOOKEEPER and LEAF_TEST_ETCD. A variable that is set already names
// the user's own server, and none is started for it: databases as a URL,
// mysql://user:password@host:port/name or postgres://…, the others as
// host:port[,host:port]. Where a server is missing it is installed on Debian for
// root, and elsewhere reported; the command then runs without the variable. So are
// the programs that tests run: clients of Redis, a browser, systemd-analyze and groff.
//
// SIGINT, SIGTERM and SIGHUP go to the command and all it has started; ten
// seconds later, or at the second signal, they are killed. The exit code is the
// command's, 128 plus the signal's number if a signal ended it, and 1 or 2 if it
// could not be run. Its temporary folder is removed after it, and its standard
// input is empty.
package main

import (
	"context"
	"flag"
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
	var o options
	flags := flag.NewFlagSet("withservers", flag.ContinueOnError)
	flags.SetOutput(report)
	flags.Usage = func() {
		fmt.Fprintln(report, "usage: withservers [-newest NAME,...] [-mysql] -- COMMAND [ARGUMENT ...]")
		flags.PrintDefaults()
	}
	flags.Var(&o.newest, "newest", "fetch the newest version of these servers")
	flags.BoolVar(&o.mysql, "mysql", false, "MySQL is the server of LEAF_TEST_MYSQL")
	o.newest = names{"mysql"}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if args = flags.Args(); len(args) == 0 {
		flags.Usage()
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

	s, err := prepare(ctx, report, o)
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
