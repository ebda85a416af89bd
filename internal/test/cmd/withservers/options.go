package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/test/newest"
)

// options are what the flags say.
type options struct {
	newest names
	mysql  bool // MySQL is the server of LEAF_TEST_MYSQL
}

// names is a flag: names with commas between them, or nothing.
type names []string

// String implements flag.Value.
func (n *names) String() string { return strings.Join(*n, ",") }

// Set implements flag.Value.
func (n *names) Set(text string) error {
	*n = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	for _, name := range *n {
		if !slices.Contains(newest.Names(), name) {
			return fmt.Errorf("%q is none of %s", name, strings.Join(newest.Names(), ", "))
		}
	}
	return nil
}

// kinds puts the newest servers in front of PATH, ours and the command's, and returns
// the kinds to start.
func (o options) kinds(ctx context.Context, report io.Writer) ([]kind, error) {
	started := slices.Clone(kinds)
	wanted := slices.Clone(o.newest)
	isMySQL := func(name string) bool { return name == "mysql" }
	named := os.Getenv(mySQL.variable) != ""
	if named {
		wanted = slices.DeleteFunc(wanted, isMySQL)
	}
	without, err := fetch(ctx, report, wanted)
	if err != nil {
		return nil, err
	}
	if !named && (slices.ContainsFunc(without, isMySQL) || !slices.ContainsFunc(o.newest, isMySQL)) {
		started = slices.DeleteFunc(started, func(k kind) bool { return k.variable == mySQL.variable })
	}
	if o.mysql {
		started[0].title, started[0].start = mySQL.title, mySQL.start
	}
	return started, nil
}

// fetch returns the names that are not available, which is an error if CI=true.
func fetch(ctx context.Context, report io.Writer, wanted []string) (without []string, err error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	source, err := newest.Default(ctx, report)
	if err != nil {
		return nil, err
	}
	path := []string{os.Getenv("PATH")}
	for i, name := range wanted {
		bin, err := source.Programs(ctx, name)
		switch {
		case err == nil:
			path = append(path, bin)
			continue
		case !errors.Is(err, newest.ErrUnavailable) || os.Getenv("CI") == "true":
			return nil, err
		}
		without = wanted[i:] // the others would fail in the same way, and as slowly
		fmt.Fprintf(report, `withservers: **********************************************************************
withservers: NOT TESTED: the newest %s. %v
withservers: Suites that need them run on the servers of this machine, or not at all.
withservers: **********************************************************************
`, strings.Join(without, ", "), err)
		break
	}
	slices.Reverse(path)
	return without, os.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
}
