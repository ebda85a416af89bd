package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// MySQLGroup is a group of MySQL servers under Group Replication, which this process
// started and which all accept writes: a commit is certified by all before it is
// answered, and one of two that collide is refused. A member serves as long as it belongs
// to a majority. The others expel a dead member after some 5 seconds, during which commits
// wait.
//
// Its members are numbered from 0. Where a method takes members, none means all. The
// methods are safe for concurrent use; those that concern one member run one after the
// other.
type MySQLGroup struct {
	*fleet
	name, password string
}

// groupPorts are those of one member: for clients, and for its peers.
const groupPorts = 2

// groupTimeout bounds a start of all: the members join one after the other.
const groupTimeout = 2 * startTimeout

// StartMySQLGroup starts that many members, at least one, with new data folders below
// parent, or in the system's temporary folder if that is empty. It returns when all
// members serve; ctx bounds the start only. The caller calls Close. The error is
// ErrMissing if MySQL is not there; test/newest fetches it.
func StartMySQLGroup(ctx context.Context, parent string, members int) (_ *MySQLGroup, err error) {
	const name = "mysql-group"
	if members < 1 {
		return nil, fmt.Errorf("start %s: %d members: at least 1 is needed", name, members)
	}
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	g := &MySQLGroup{password: rand.Text(), name: randomUUID()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", name, err), g.Close())
		}
	}()
	if g.fleet, err = newFleet(ctx, parent, name, members, groupPorts, mySQL{}.stopSignal()); err != nil {
		return nil, err
	}
	if err := g.install(ctx); err != nil {
		return nil, err
	}
	if err := g.try(nil, func(i int) error { return g.launch(ctx, i) }); err != nil {
		return nil, err
	}
	for i := range g.Len() { // the first one begins the group
		if err := g.join(ctx, i, i == 0); err != nil {
			return nil, fmt.Errorf("member %d: %w", i, err)
		}
	}
	return g, g.Wait(ctx)
}

// randomUUID names a group.
func randomUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// install sets up the first member and makes the others copies of it. A copy gets a name
// of its own when it starts.
func (g *MySQLGroup) install(ctx context.Context) error {
	first := g.nodes[0].dir
	if err := (mySQL{}).install(ctx, first, g.password); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(first, "data", "auto.cnf")); err != nil {
		return err
	}
	return g.copyFirst(func(string) error { return nil })
}

// Database returns the database "leaf" on member i.
func (g *MySQLGroup) Database(i int) Database {
	return mySQL{}.later(g.nodes[i].ports[0].Number, g.password)
}

// Restart starts the members again, on the same ports and data folders, after Kill or
// Stop, and returns when they serve with all that they missed. Those that still run are
// stopped first. They join the members that are left; if there are none, it is an error.
func (g *MySQLGroup) Restart(ctx context.Context, members ...int) error {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	for _, i := range g.all(members) {
		if err := g.RestartOutside(ctx, i); err != nil {
			return err
		}
		if err := g.join(ctx, i, false); err != nil {
			return fmt.Errorf("restart member %d of %s: %w", i, g.title, err)
		}
	}
	return g.Wait(ctx, members...)
}

// RestartOutside starts member i again, and lets it join nothing. It answers queries, as a
// member does whose group_replication_start_on_boot is off. options are added to its
// command line.
func (g *MySQLGroup) RestartOutside(ctx context.Context, i int, options ...string) error {
	if err := g.launch(ctx, i, options...); err != nil {
		return fmt.Errorf("restart member %d of %s: %w", i, g.title, err)
	}
	return nil
}

// Wait returns when all the members serve, e.g. after Resume, and when each has applied
// what was committed before.
func (g *MySQLGroup) Wait(ctx context.Context, members ...int) error {
	err := until(ctx, func() error {
		return g.try(members, func(i int) error { return g.serves(ctx, i) })
	})
	if err != nil {
		return fmt.Errorf("wait for %w", err)
	}
	return nil
}

// serves returns an error while a member is outside of the group or behind it.
func (g *MySQLGroup) serves(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var state string
	var readOnly bool
	if err := g.Database(i).Named("").scan(ctx, "SELECT MEMBER_STATE FROM performance_schema.replication_group_members"+
		" WHERE MEMBER_ID = @@server_uuid", &state); err != nil {
		return err
	}
	if err := g.Database(i).Named("").scan(ctx, "SELECT @@super_read_only", &readOnly); err != nil {
		return err
	}
	if state != "ONLINE" || readOnly {
		return fmt.Errorf("state %s, super_read_only %v", state, readOnly)
	}
	return nil
}

// join makes member i, which runs, part of the group, or begins the group.
func (g *MySQLGroup) join(ctx context.Context, i int, begin bool) error {
	statements := []string{"START GROUP_REPLICATION"}
	if begin {
		statements = []string{"SET GLOBAL group_replication_bootstrap_group = ON", statements[0], "SET GLOBAL group_replication_bootstrap_group = OFF"}
	}
	for _, statement := range statements {
		// A member that was just killed may still be on the list of the others: they refuse it until they have expelled it.
		err := until(ctx, func() error { return g.Database(i).Named("").exec(ctx, statement) })
		if err != nil {
			return err
		}
	}
	return nil
}

// launch starts member i, and stops it first if it runs, and waits until it answers.
func (g *MySQLGroup) launch(ctx context.Context, i int, options ...string) error {
	command := func(ctx context.Context) (*exec.Cmd, error) { return g.command(ctx, i, options...) }
	return g.run(ctx, i, command, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		// It stays in the member's own tables: a member that was expelled joins again by it.
		return g.Database(i).Named("").exec(ctx, "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root', SOURCE_PASSWORD = '"+g.password+
			"' FOR CHANNEL 'group_replication_recovery'")
	})
}

// command is member i itself.
func (g *MySQLGroup) command(ctx context.Context, i int, options ...string) (*exec.Cmd, error) {
	n := g.nodes[i]
	cmd, err := mySQL{}.command(ctx, n.dir, n.ports[0].Number)
	if err != nil {
		return nil, err
	}
	plugins, err := groupPlugins(cmd.Path)
	if err != nil {
		return nil, err
	}
	cmd.Args = slices.DeleteFunc(cmd.Args, func(s string) bool {
		return s == "--skip-log-bin" || s == "--performance-schema=OFF" // the list of members is in it
	})
	cmd.Args = append(cmd.Args,
		"--server-id="+strconv.Itoa(i+1), "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--report-host=127.0.0.1", "--super-read-only=ON", // see docs/MIGRATION.md
		"--plugin-dir="+plugins, "--plugin-load-add=group_replication.so",
		"--group-replication-group-name="+g.name,
		"--group-replication-start-on-boot=OFF",
		"--group-replication-local-address="+n.ports[1].Addr(),
		"--group-replication-group-seeds="+g.peers(1),
		"--group-replication-single-primary-mode=OFF", "--group-replication-enforce-update-everywhere-checks=ON",
		"--group-replication-recovery-get-public-key=ON", "--group-replication-recovery-reconnect-interval=1",
		"--group-replication-member-expel-timeout=0", // a dead member is missed after 5 s
	)
	cmd.Args = append(cmd.Args, options...)
	return cmd, nil
}

// groupPlugins returns the folder of the plugin: of test/newest's copy, or of the system.
func groupPlugins(binary string) (string, error) {
	above := filepath.Dir(filepath.Dir(binary))
	for _, folder := range []string{filepath.Join(above, "usr/lib/mysql/plugin"), filepath.Join(above, "lib/mysql/plugin")} {
		if _, err := os.Stat(filepath.Join(folder, "group_replication.so")); err == nil {
			return folder, nil
		}
	}
	return "", fmt.Errorf("group_replication.so beside %s: %w: run the tests by bin/withservers, which fetches MySQL", binary, ErrMissing)
}
