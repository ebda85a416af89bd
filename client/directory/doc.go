// Package directory opens the directory of nodes of a cluster, by the URL of the
// registry that it stands in:
//
//	nodes, err := directory.Open("mysql://app:secret@db.example.org/leaf")
//	...
//	c, err := client.New(nodes)
//
// It is apart from package client because it brings the drivers of all registries with
// it. A program that knows its registry can open the one driver instead, and one that
// knows its nodes needs neither.
//
// Promises:
//
//  1. Open does not connect and does not wait. A registry that is down is an error of
//     the first List, not of Open.
//  2. No error shows a password.
//
// A client only reads: its user needs no right in the database but SELECT on leaf_node,
// and in etcd none but to read the prefix. ZooKeeper has no users here.
package directory
