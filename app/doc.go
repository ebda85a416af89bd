// Package app puts a node together: configuration, wiring, lifecycle. It is the
// only package that knows engines, drivers and servers at once.
//
// # Configuration
//
// [Config] defines every key once; [Keys] derives flag, environment variable and
// YAML form from it. [Load] merges them: flag over environment over file over
// default. Nothing is guessed: an unknown key, a value outside its limits, a
// duplicate or an impossible combination is a [ConfigError] with key, value, place
// and limit, and all of them are reported at once. A .properties file of the Java
// server is translated (legacy.go, jdbc.go).
//
// # Lifecycle
//
// [New] opens and binds everything or nothing: data directory (locked), stores,
// engine, HTTP listener, admin socket. [App.Start] serves, [App.Stop] drains within
// a deadline, gives back unused IDs, and releases the lock last. [Run] is the three
// in a row.
//
// It promises:
//
//  1. While an App exists, no other process uses its data directory.
//  2. A node whose database does not answer starts, answers 503, is not ready, and
//     serves once the database is back. A database that can never be used (no
//     table, another tag rule) ends the start.
//  3. Stop returns by its deadline. What was not given back by then is lost, never
//     repeated.
//  4. No password is logged or printed.
//
// # Administration
//
// [Backend] and [OpenBackend] give the commands one interface (admin.Backend): the
// node's own, the client of a running node, or the opened stores without a node.
// Without a node the fence of the data directory still holds: issuing and repairing
// need its lock.
//
// It does not parse command lines (package cli) and does not issue IDs (package
// segment).
package app
