// Command chaos breaks real servers under real nodes and reports what clients
// noticed and whether an ID was issued twice:
//
//	go run ./internal/test/cmd/chaos -minutes 10
//	go run ./internal/test/cmd/chaos -minutes 2 -topology failover -seed 7
//
// It runs all topologies of package chaos, or those named, one after the other, says
// on standard error what happens, and writes chaos.txt. The exit code
// is 1 if a promise was broken or a run was not possible, and 2 for a wrong flag.
package main
