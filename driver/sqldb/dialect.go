package sqldb

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/segment"
)

// dialect is everything that differs between databases. A new one is one file
// that fills it, one line in dialects, one file in schema, and one row in the
// tests.
type dialect struct {
	name    string   // also the name of its file in schema
	schemes []string // of its URLs

	embedded    bool     // the database is a file of this process: Bind creates it
	port        string   // default port
	params      []string // parameters that a URL may have
	files       []string // those of params that name a file
	socketParam string   // the one that names a Unix socket instead of a host

	open func(t target, l *login, cfg Config) (pools, error)

	// dialer reads from the URL, and from the files that it names, what a new connection
	// needs. nil: of an embedded database.
	dialer func(t target) (*dialer, error)

	numbered  bool              // placeholders are $1, $2 instead of ?
	quote     string            // around a column name
	begin     func(idle) string // starts a transaction that may write
	forUpdate string            // appended to a SELECT to lock its row
	share     string            // appended to a SELECT that begins a transaction, so that it opens no view of the database; see change
	exact     string            // a condition with one parameter: biz_tag equals it byte by byte
	bytes     string            // the expression: biz_tag as what is compared and ordered byte by byte
	after     string            // a condition with one parameter: bytes comes after it
	epoch     string            // the expression: update_time in seconds since 1970
	now       string            // the expression: the database's clock in ms since 1970
	upsert    string            // follows an INSERT whose key may exist; %s: the key
	proposed  string            // in it, the value that the INSERT would have written; %s: the column
	greatest  string            // the function: the largest of its arguments

	// reserveOnce tries to reserve in one round trip. matched is false if it wrote
	// nothing, because the row is not there, not valid, or not as req believes; the
	// caller then looks. nil: there is no such statement.
	reserveOnce func(ctx context.Context, s *Store, req segment.Request) (res segment.Reservation, matched bool, err error)

	// settle are statements of one transaction. When it has ended, each load either has ended
	// or sees what was committed before: it waits for the loads under way, and changes every
	// row without a trace, so that a load with an older view of leaf_meta fails. Empty: loads
	// are one behind the other.
	settle []string

	// check verifies that the server can be trusted with existing tables.
	check func(ctx context.Context, s *Store, tables ...string) error

	// grant returns the rights, and what they are on, that would have spared an error of
	// kindDenied; "" if there are none. account is a query for the account that has them.
	grant   func(t target, err error) string
	account string

	// kindOf classifies an error of the driver by its typed code.
	kindOf func(err error) kind

	texts // what follows from the above
}

// texts are the statements of a dialect, by what they work on.
type texts struct {
	sql       statements
	board     boardStatements
	records   recordStatements
	slots     recordStatements
	directory directoryStatements
	audit     auditStatements
	token     tokenStatements
}

// dialects are all of them.
var dialects = withTexts(&mysqlDialect, &postgresDialect, &sqliteDialect)

func withTexts(all ...*dialect) []*dialect {
	for _, d := range all {
		d.texts = texts{
			d.statements(), d.boardStatements(), d.recordStatements(workerTable), d.recordStatements("leaf_slot"),
			d.directoryStatements(), d.auditStatements(), d.tokenStatements(),
		}
	}
	return all
}

func dialectFor(scheme string) *dialect {
	for _, d := range dialects {
		if slices.Contains(d.schemes, scheme) {
			return d
		}
	}
	return nil
}

func schemes() (all []string) {
	for _, d := range dialects {
		all = append(all, d.schemes...)
	}
	return all
}

// Prefixes returns the beginnings of all URLs that Open accepts: "mysql://" and others for
// servers, "sqlite:" for files.
func Prefixes() (all []string) {
	for _, d := range dialects {
		end := "://"
		if d.embedded {
			end = ":"
		}
		for _, s := range d.schemes {
			all = append(all, s+end)
		}
	}
	return all
}

// statements are the texts that depend on the dialect only.
type statements struct {
	read    string // one row: tag
	lock    string // the same, locked
	advance string // compare-and-set: new max_id, tag, tag, old max_id
	delete  string // tag, tag

	hasOption     string // the name of one row: tag
	insertOption  string // a row that has no value yet: tag
	deleteOptions string // tag, tag

	limit        string // one row of limits: tag
	limits       string // those that are not zero
	putLimit     string // limitColumns, tag, tag
	clientLimit  string // one row: client_name
	clientLimits string
	deleteClient string // client_name

	meta       string // name, value of all
	lockMeta   string // the same, locked
	insertMeta string // name, value, name, value
	insertName string // name, value
	named      string // value: name
	deleteMeta string
	cluster    string // the cluster's ID
	ofChange   string // the same, as the first statement of a transaction
	owner      string // see owner
}

func (d *dialect) statements() statements {
	const where = " WHERE biz_tag = ? AND "
	set := "UPDATE leaf_alloc SET max_id = ?, update_time = CURRENT_TIMESTAMP" + where + d.exact + " AND max_id = ?"
	limits := "SELECT biz_tag, rate_limit, quota, blocked FROM leaf_tag_option"
	const clients = "SELECT client_name, rate_limit, quota, blocked FROM leaf_client_option"
	const cluster = "SELECT value FROM leaf_meta WHERE name = '" + metaCluster + "'"
	const some = " WHERE rate_limit <> 0 OR quota <> 0 OR blocked"
	read := "SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?"
	return statements{
		read:    d.bind(read),
		lock:    d.bind(read + d.forUpdate),
		advance: d.bind(set),
		delete:  d.bind("DELETE FROM leaf_alloc" + where + d.exact),

		hasOption:     d.bind("SELECT biz_tag FROM leaf_tag_option WHERE biz_tag = ?"),
		insertOption:  d.bind("INSERT INTO leaf_tag_option (biz_tag, update_time) VALUES (?, CURRENT_TIMESTAMP)"),
		deleteOptions: d.bind("DELETE FROM leaf_tag_option" + where + d.exact),

		limit:        d.bind(limits + " WHERE biz_tag = ?"),
		limits:       limits + some,
		putLimit:     d.put(limitColumns),
		clientLimit:  d.bind(clients + " WHERE client_name = ?"),
		clientLimits: clients + some,
		deleteClient: d.bind("DELETE FROM leaf_client_option WHERE client_name = ?"),

		meta:       "SELECT name, value FROM leaf_meta",
		lockMeta:   "SELECT name, value FROM leaf_meta" + d.forUpdate,
		insertMeta: d.bind("INSERT INTO leaf_meta (name, value) VALUES (?, ?), (?, ?)"),
		insertName: d.bind("INSERT INTO leaf_meta (name, value) VALUES (?, ?)"),
		named:      d.bind("SELECT value FROM leaf_meta WHERE name = ?"),
		deleteMeta: "DELETE FROM leaf_meta WHERE name IN ('" + metaRule + "', '" + metaStore + "', '" + metaStores + "', '" + metaDecision + "')",
		cluster:    cluster,
		ofChange:   cluster + d.share,
		owner:      "SELECT " + ownerValues,
	}
}

// bind writes the placeholders of a statement as the dialect wants them.
func (d *dialect) bind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// column quotes a column name.
func (d *dialect) column(name string) string { return d.quote + name + d.quote }
