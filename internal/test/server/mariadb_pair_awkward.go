package server

import (
	"context"
	"os/exec"
	"testing"
)

// mariaDBAwkwardPair replicates by statement to a standby whose settings differ in all
// that a statement can depend on. Whoever leaves the meaning of a statement to its
// session has two databases afterwards, while the replication is healthy.
type mariaDBAwkwardPair struct{ mariaDBPair }

func (mariaDBAwkwardPair) name() string { return "mariadb-awkward-pair" }

func (k mariaDBAwkwardPair) command(ctx context.Context, dir string, port int, r role) (*exec.Cmd, error) {
	cmd, err := k.mariaDBPair.command(ctx, dir, port, r)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "--binlog-format=STATEMENT")
	if r == standby || r == detached {
		cmd.Args = append(cmd.Args, "--autocommit=0", "--completion-type=1", "--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES",
			"--default-time-zone=-11:00", "--transaction-isolation=SERIALIZABLE",
			"--character-set-server=latin1", "--collation-server=latin1_bin")
	}
	return cmd, nil
}

// StartMariaDBAwkwardPair is StartMariaDBPair with a binlog by statement, and a standby
// whose time zone, sql_mode, character set and way to commit are others.
func StartMariaDBAwkwardPair(ctx context.Context, parent string, o PairOptions) (*Pair, error) {
	return startPair(ctx, mariaDBAwkwardPair{}, parent, o)
}

// OwnMariaDBAwkwardPair is StartMariaDBAwkwardPair for this test alone.
func OwnMariaDBAwkwardPair(t testing.TB, o PairOptions) *Pair {
	t.Helper()
	return ownPair(t, mariaDBAwkwardPair{}, o)
}
