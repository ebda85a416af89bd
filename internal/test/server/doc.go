// Package server starts real servers for tests, MariaDB, MySQL, PostgreSQL, ZooKeeper
// and etcd, from the binaries on PATH and in the system's folders, on free loopback
// ports, with temporary data folders. Programs of test/newest in front of PATH are
// other versions of them.
//
// A test that only needs a place of its own asks for it: for a database with
// [MariaDB], [MySQL] or [Postgres], for a root of paths or keys with [ZooKeeper] or
// [Etcd]. It lies on the server named by LEAF_TEST_MYSQL, LEAF_TEST_MYSQL_NEWEST,
// LEAF_TEST_POSTGRES, LEAF_TEST_ZOOKEEPER or LEAF_TEST_ETCD, if that is set: the one that
// internal/test/cmd/withservers shares between all packages, or the user's own. Without
// the variable the test gets a private server. A test that kills, stops or
// freezes its server asks for a private one with [OwnMariaDB], [OwnMySQL], [OwnPostgres],
// [OwnZooKeeper] or [OwnEtcd]; the last two come with one or more nodes.
//
// Replicated databases come in two shapes, for one test or one run alone. A
// [Pair] is a primary and its synchronous standby ([OwnMariaDBPair],
// [OwnPostgresPair]), which loses nothing that was answered when it fails over,
// or exactly what was committed after [Pair.Detach], or ends with two primaries.
// The standby of [OwnMariaDBAwkwardPair] gets statements instead of rows, and has other
// settings than the primary.
// The nodes of a [Galera] all accept writes, as long as they are a majority
// ([OwnGalera]), and so do the members of a [MySQLGroup] ([OwnMySQLGroup]). All groups can be used without a test, by the Start functions.
//
// Who can reach whom is decided in three ways. Between clients and servers, and
// between a primary and its standby, stands a internal/test/proxy ([PairOptions]). The
// nodes of an Ensemble that was started apart ([OwnZooKeeperApart],
// [OwnEtcdApart]) live in network namespaces, and what one sends to another can
// be made to vanish, in one direction or both. A node of a Galera can be isolated
// from all others, both ways only. Where namespaces are not allowed, freezing a
// node with Pause is the nearest thing.
//
// A [Disk] is a small file system that a test can fill, for the data folder of a
// node under test or of a server, which is started below its path.
//
// It promises:
//
//  1. No test sees another's rows, paths or keys: every database and every root
//     is new, and removed after.
//  2. No server outlives the process that started it, however that ends (Linux;
//     elsewhere only an orderly end stops them).
//  3. No data folder, mounted disk or network interface stays behind: Close removes
//     it, and what a killed process left is removed by the next start, the
//     interface by the kernel.
//  4. A server that was started answers queries: starting waits for the first
//     accepted one. Of an ensemble every node serves, which needs a majority.
//  5. A missing binary skips the test with a text that names the package to
//     install, and fails it when CI=true; so does a disk or a network
//     where making one is not allowed. "go test -short" always skips.
//  6. A server keeps its ports until it is closed, also while it is down (Linux:
//     no other process that uses this package is given them).
//
// It does not install anything (internal/test/cmd/withservers does), and of this
// module it imports test/port alone, so that every room can be tested with it.
package server
