package sqldb

import (
	"fmt"
	"time"
)

// idleTransaction is how long a server waits for the next statement of a transaction
// before it rolls the transaction back and ends the session. A node that is frozen in
// the middle of one (a virtual machine that is being moved, SIGSTOP, a partition) keeps
// its connection and with it the row of its tag or worker ID, from all other nodes;
// unless told otherwise servers wait for hours or for ever.
//
// It is above the default deadline of a call (2 s), after which a node that is awake
// ends the transaction itself; and below the time for which a statement waits for a row
// (innodb_lock_wait_timeout, 10 s). For the node it is an error of its next statement.
// If that is the COMMIT, the outcome counts as unknown, as that of any lost connection:
// no range, no claim, and nothing is sent twice.
const idleTransaction = 5 * time.Second

// MySQL has no such bound, only wait_timeout, which ends a silent connection whether or
// not it is in a transaction. mysqlSilent is far below the default horizon (10 minutes): a
// worker ID whose holder is gone is free no sooner. The pool closes idle connections
// before the server does, so that no statement meets a connection that is being ended.
const (
	mysqlSilent   = 30 * time.Second
	mysqlPoolIdle = 20 * time.Second
)

// The settings as parts of statements that are sent anyway. None needs a privilege.
var (
	// postgresIdle follows BEGIN and holds for its transaction only. As a parameter of
	// the connection it would be refused by a pooler, and as a setting of the session a
	// pooler would keep it for other clients. PostgreSQL knows it from 9.6 on.
	postgresIdle = fmt.Sprintf("; SET LOCAL idle_in_transaction_session_timeout = %d", idleTransaction.Milliseconds())

	// mariaDBIdle continues a SET, in a comment that MySQL skips and MariaDB obeys from
	// 10.3 on. The two special bounds come before the general one where they are set.
	mariaDBIdle = fmt.Sprintf(" /*M!100300 , @@session.idle_transaction_timeout = %[1]d,"+
		" @@session.idle_write_transaction_timeout = %[1]d, @@session.idle_readonly_transaction_timeout = %[1]d */", idleTransaction/time.Second)

	// mysqlIdle continues a SET, in a comment that MySQL obeys from 5.7 on and MariaDB
	// skips: it takes no version between 5.7 and 10 for its own.
	mysqlIdle = fmt.Sprintf(" /*!50700 , @@session.wait_timeout = %d */", mysqlSilent/time.Second)
)
