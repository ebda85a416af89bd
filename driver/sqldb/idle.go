package sqldb

import (
	"fmt"
	"time"
)

// idle bounds how long a client may be silent and keep rows locked. A node that is frozen in the middle of a
// transaction (a virtual machine that is being moved, SIGSTOP, a partition) keeps its connection and with it
// the row of its tag or worker ID, from all other nodes; unless told otherwise servers wait for hours or for
// ever. For the node the end of its session is an error of its next statement. If that is the COMMIT, the
// outcome counts as unknown, as that of any lost connection: no range, no claim, and nothing is sent twice.
type idle struct {
	// transaction is how long a server waits for the next statement of a transaction before it rolls
	// the transaction back and ends the session. MariaDB counts it in seconds.
	transaction time.Duration

	// MySQL has no such bound, only wait_timeout, which ends a silent connection whether or not it is in
	// a transaction. The pool closes idle connections before the server does, so that few statements
	// meet a connection that is being ended: those are sent again on another one.
	mysqlSilent, mysqlPool time.Duration
}

var (
	// idleRows is for ranges and worker IDs. transaction is above the default deadline of a call (2 s),
	// after which a node that is awake ends the transaction itself; and below the time for which a statement
	// waits for a row (innodb_lock_wait_timeout, 10 s). mysqlSilent is far below the default horizon (10
	// minutes): a worker ID whose holder is gone is free no sooner.
	idleRows = idle{transaction: 5 * time.Second, mysqlSilent: 30 * time.Second, mysqlPool: 20 * time.Second}

	// idleSlots is for slots. All bounds are below the time after which another node takes a slot over (2.2 s by
	// default), so a row that a dead owner has locked is free by then. Owners renew twice a second.
	idleSlots = idle{transaction: time.Second, mysqlSilent: 2 * time.Second, mysqlPool: time.Second}
)

// The settings are parts of statements that are sent anyway. None needs a privilege.

// postgres follows BEGIN and holds for its transaction only. As a parameter of the connection it
// would be refused by a pooler, and as a setting of the session a pooler would keep it for other clients.
// PostgreSQL knows it from 9.6 on.
func (i idle) postgres() string {
	return fmt.Sprintf("; SET LOCAL idle_in_transaction_session_timeout = %d", i.transaction.Milliseconds())
}

// mariaDB continues a SET, in a comment that MySQL skips and MariaDB obeys from 10.3 on. The two special
// bounds come before the general one where they are set.
func (i idle) mariaDB() string {
	return fmt.Sprintf(" /*M!100300 , @@session.idle_transaction_timeout = %[1]d,"+
		" @@session.idle_write_transaction_timeout = %[1]d, @@session.idle_readonly_transaction_timeout = %[1]d */", i.transaction/time.Second)
}

// mysql continues a SET, in a comment that MySQL obeys from 5.7 on and MariaDB skips: it takes no
// version between 5.7 and 10 for its own.
func (i idle) mysql() string {
	return fmt.Sprintf(" /*!50700 , @@session.wait_timeout = %d */", i.mysqlSilent/time.Second)
}
