// Package sqldb is the segment.Store and segment.Catalog on a SQL database, and in the
// same or in another one a registry of worker IDs (worker.Records) and a directory of
// nodes (discovery.Directory): one file per dialect (MySQL with MariaDB, PostgreSQL,
// SQLite). The registry is in the files records*.go, a second one in the same form, for
// the owners of tags in strict order, in slots.go, the directory in directory.go, the
// counters of other ID services, which are only read, in the files source*.go, the
// dialects in mysql*.go, postgres*.go and sqlite*.go, and the store in the others.
//
// What the store promises, beside the contract of the interfaces:
//
//  1. A range is what one committed statement, or one committed transaction,
//     reserved. The row is read under its lock before and after the change, and the
//     difference must be the length that Reserve asked for: a trigger or a column may
//     have written another number. Any error before the server's last word, the
//     acknowledged commit, means no range.
//  2. The transaction writes by compare-and-set on the max_id that it read, so
//     that it is right even where the server's row lock is not what it seems.
//  3. ReturnUnused is sent at most once: on a connection that was pinged before, and
//     outside the retries of database/sql.
//  4. Tag names are compared byte by byte in every statement that writes and on
//     every row that is read, whatever the collation of the column.
//  5. Every round trip, BEGIN and COMMIT included, ends with its context. A connection
//     is used again only after an acknowledged end of its statement and its transaction,
//     and after a panic of the driver only a new one.
//  6. An existing leaf_alloc is never altered. Bind and the calls of the engine
//     write no schema, except to an embedded database (SQLite), which Bind creates.
//
// What the registry promises:
//
//  7. A claim and its T are written by one transaction, and only if every column of
//     both is what the writer saw. The comparison is made on locked rows and repeated
//     by the writing statement, so it depends on no default isolation.
//  8. A lost reply to COMMIT is an error that says nothing, never worker.ErrLost.
//  9. leaf_worker_bound is written by claims only and never deleted, so that
//     deleting from leaf_worker leaves every T where it was.
//  10. What is read is committed, and claim and T are of one moment. At a member of a group
//     it is no older than what another member had acknowledged before.
//  11. Which nodes run is judged by the database's clock.
//  12. Numbers in leaf_workerid_alloc, the table of a fork of the Java server, are
//     given to their address only.
//
// What the directory promises:
//
//  13. An entry ends by the clock of the database, and is written whole or not at all.
//
// And all, in an embedded database (SQLite):
//
//  14. What was written after the file, its -wal or its -shm was deleted or replaced
//     under us is an error, for a claim worker.ErrLost, and the next call uses the file
//     that the path names then. None is made beside the -wal or -shm of a deleted one.
//     CheckFile tells of the loss for ever. Every commit is copied into the main file at
//     once, so that no commit is lost with the -wal.
//
// And all, on a server:
//
//  15. A transaction whose client falls silent is rolled back after 5 s, by MySQL, which
//     has no bound for transactions, after 30 s. So a node that is frozen in the middle
//     of one keeps its row from the others for no longer. To the node it is a lost
//     connection, see 1 and 8.
//
// MySQL and MariaDB reserve in one round trip (a whole transaction in one message),
// PostgreSQL too (UPDATE … RETURNING and a SELECT in one message); when the row is not as the
// caller believes, they read it and, if it is usable, send the message again with what it holds. SQLite
// has no round trips to save and always takes a transaction of several statements,
// because it commits a RETURNING statement only after its rows were read.
//
// No statement that writes depends on its session, so that a replica which carries it
// out again has the same rows. PostgreSQL that warns at a commit, as it does when its
// wait for the synchronous standby is cancelled, has not committed for us: the outcome
// is unknown.
//
// Reserve may be sent twice by database/sql when a pooled connection turns out to
// be dead. That can only skip numbers, never repeat them.
//
// What it does not do: it makes no range durable that the server does not make
// durable (innodb_flush_log_at_trx_commit, synchronous_commit), and it does not
// notice a failover; see the engine's fence for that. A failover that loses the last
// renewals is noticed by the owner's next renewal, not before. It does not notice a
// node of the fork that goes on with a number which was adopted. An SQLite file belongs on a
// local filesystem and may be shared by processes of one machine, not copied.
package sqldb
