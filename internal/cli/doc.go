// Package cli is the command line of leaf.
//
// It promises: (1) the exit codes of [Run] are stable; (2) an error is one line per
// problem on standard error that says what to do, never a stack trace; (3) with
// --json standard output is one JSON value in which 64-bit numbers are strings;
// (4) a command beside a running node talks to that node, and opens the stores or the
// registry of worker IDs itself only without one or where a flag names them; (5) every configuration key of package app is
// a flag of leaf serve and leaf config check.
//
// The flags of configuration keys are made from config.Keys. They only collect text:
// precedence, limits and error texts are those of config.Load, the same for every
// source. (Kong could read the environment by itself, but ranks it below its
// resolvers, so that a file would win over a variable.)
//
// It decides nothing about IDs, stores or nodes.
package cli
