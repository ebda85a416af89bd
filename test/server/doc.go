// Package server starts real database servers for tests: MariaDB and PostgreSQL
// from the machine's own binaries, on free loopback ports, with temporary data
// folders.
//
// A test that only needs a database asks for one of its own with [MariaDB] or
// [Postgres]. It lies on the server named by LEAF_TEST_MYSQL or
// LEAF_TEST_POSTGRES, if that is set: the one that test/cmd/withservers shares
// between all packages, or the user's own. Without the variable the test gets a
// private server. A test that kills, stops or freezes its server asks for a
// private one with [OwnMariaDB] or [OwnPostgres].
//
// It promises:
//
//  1. No test sees another's rows: every database is new, and dropped after.
//  2. No server outlives the process that started it, however that ends (Linux;
//     elsewhere only an orderly end stops them).
//  3. No data folder stays behind: Close removes it, and what a killed process
//     left is removed by the next start.
//  4. A server that was started answers queries: starting waits for the first
//     accepted one.
//  5. A missing binary skips the test with a text that names the package to
//     install, and fails it when CI=true. "go test -short" always skips.
//
// It does not install anything (test/cmd/withservers does), and it imports
// nothing else of this module, so that every room can be tested with it.
package server
