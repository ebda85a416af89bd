package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

//go:embed schema/*.sql
var schemas embed.FS

// Schema returns the statements that create the tables, for a dialect's name:
// "mysql", "postgres" or "sqlite".
func Schema(dialect string) (string, error) {
	text, err := schemas.ReadFile("schema/" + dialect + ".sql")
	if err != nil {
		var names []string
		for _, d := range dialects {
			names = append(names, d.name)
		}
		return "", leaf.BadField("dialect", dialect, "must be one of "+strings.Join(names, ", "))
	}
	return string(text), nil
}

// ApplySchema creates the tables that are missing and returns what it did, one
// line per table. It never alters leaf_alloc; of the others it adds columns that older
// ones lack, which older programs do not notice. It may be repeated.
func (s *Store) ApplySchema(ctx context.Context) (report []string, err error) {
	defer s.done(ctx, time.Now(), &err, "apply schema")
	return s.createTables(ctx)
}

// besideJava says what to do before nodes take worker IDs from a database that Java servers use.
const besideJava = "if Java servers serve snowflake mode, start each node with --no-snowflake-enable, or with their registry, as docs/MIGRATION.md says: a worker ID of this database can be that of a Java server"

var createTable = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+).*?;`)

func (s *Store) createTables(ctx context.Context) (report []string, err error) {
	if s.dialect.embedded {
		end := make(chan struct{})
		s.making.Store(&end)
		defer close(end)
		made, err := createFile(s.target.path)
		if err != nil {
			return nil, err
		}
		if made {
			s.made.Store(true)
		}
	}
	script, err := Schema(s.dialect.name)
	if err != nil {
		return nil, err
	}
	met := false  // nodes of this program have used the database
	java := false // Java servers may have used it: the table that they have, too, was there before
	for _, statement := range createTable.FindAllStringSubmatch(script, -1) {
		query, table := statement[0], statement[1]
		columns, err := s.columns(ctx, table)
		if err != nil {
			return report, err
		}
		if columns != nil {
			met, java = met || table == "leaf_meta", java || table == "leaf_alloc"
			lines, err := s.addColumns(ctx, query, table, columns)
			if err != nil {
				return report, err
			}
			report = append(report, lines...)
			continue
		}
		if err := s.createOne(ctx, query); err != nil {
			return report, fmt.Errorf("create table %s: %w", table, err)
		}
		report = append(report, "table "+table+" created")
		if java && table == workerTable { // nodes that run without it take worker IDs from it soon
			report = append(report, "table leaf_alloc was there before: "+besideJava)
		}
		if met && table == "leaf_repair_node" {
			report = append(report, "if table leaf_repair_node was lost, so is where the numbers of deleted tags end: wait for a minute, in which nodes tell what they know, "+
				"and then create a tag that was there before with --start NUMBER, with "+segment.AboveAll)
		}
	}
	s.layout.Store(nil)
	return report, nil
}

// awaitTables waits while this process makes the tables of an embedded database. Another process that makes them at the same
// time keeps it waiting, and a reader would find some of them, or none.
func (s *Store) awaitTables(ctx context.Context) {
	if end := s.making.Load(); end != nil {
		select {
		case <-*end:
		case <-ctx.Done():
		}
	}
}

// createOne runs one CREATE TABLE IF NOT EXISTS. PostgreSQL reports a duplicate
// when two clients create the same table at once; the second attempt then finds
// it.
func (s *Store) createOne(ctx context.Context, query string) error {
	create := func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query)
		return err
	}
	err := s.transact(ctx, create)
	if err != nil && s.dialect.kindOf(err) == kindDuplicate {
		err = s.transact(ctx, create)
	}
	return err
}

// laterColumn is a column that a table may lack, because an older program made the table: every
// row can do without a value of its own. update_time is none, SQLite cannot add it.
var laterColumn = regexp.MustCompile(`(?m)^  (\w+) .* NOT NULL DEFAULT (?:0|false|'')`)

// addColumns adds to a table the columns that it lacks, and reports.
func (s *Store) addColumns(ctx context.Context, create, table string, has []string) (report []string, err error) {
	for _, column := range laterColumn.FindAllStringSubmatch(create, -1) {
		definition, name := column[0], column[1]
		if slices.Contains(has, name) || table == "leaf_alloc" {
			continue
		}
		if err := s.addColumn(ctx, table, name, definition); err != nil {
			return nil, err
		}
		report = append(report, "table "+table+": column "+name+" added")
	}
	if report == nil {
		report = []string{"table " + table + " exists, left as it is"}
	}
	return report, nil
}

// addColumn adds one column. That another process adds it at the same time is no error.
func (s *Store) addColumn(ctx context.Context, table, name, definition string) error {
	alterErr := s.transact(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "ALTER TABLE "+table+" ADD COLUMN "+definition)
		return err
	})
	if alterErr == nil {
		return nil
	}
	if columns, err := s.columns(ctx, table); err == nil && slices.Contains(columns, name) {
		return nil
	}
	return fmt.Errorf("add column %s to table %s: %w", name, table, alterErr)
}
