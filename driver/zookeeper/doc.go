// Package zookeeper keeps worker IDs, the cluster fence and the directory of nodes in
// ZooKeeper.
//
//   - [Original] is a worker.Registry in the layout of the Java server: a number
//     belongs to an ip:port for ever, and Java and Go nodes may share one path.
//   - [Recycle] is the storage of a worker.NewPool: numbers go to any node that asks and
//     return. Its path is its own; it is not that of any Java program.
//   - [Fence] is a fence.Cluster.
//   - [Directory] is a discovery.Directory.
//
// Below the root /snowflake/<name>:
//
//	forever/<ip>:<port>-NNNNNNNNNN   what Java reads and writes: {"ip":…,"port":…,"timestamp":…}
//	leaf_owner/<ip>:<port>           whose the number is, and which timestamp we wrote last
//	leaf_owner/<ip>:<port>/<nonce>   exists as long as this nonce is the owner
//	leaf_namespace                   name, fingerprint, and from when on fresh numbers may be used
//	leaf_temporary/<ip>:<port>       ephemeral: the process runs
//	leaf_pool/…                      the same for Recycle: namespace, claims, bounds, peers
//	leaf_id                          the ID of the registry, of both kinds, which no namespace ends
//
// No claim is made while both leaf_namespace and leaf_pool/namespace exist, and none is
// renewed without its own one, so the two kinds never hold numbers at the same time.
//
// What it promises, beside the contracts of the interfaces:
//
//  1. Every change is one multi that expects the exact data versions that this
//     process wrote or read last, and the existence of a node that is named by the
//     nonce: versions start at 0 again when a node is deleted and created, nonces do
//     not come back. A claim also expects the namespace that it read.
//  2. No record and no T is tied to a session. Ephemeral nodes say which processes run and where,
//     and nothing else.
//  3. Nothing but the exact child of its own address, and the records that the name
//     leads to, is interpreted by a claim. What cannot be read there is
//     worker.ErrForeign with its path; other children, also garbage, are left alone.
//  4. forever holds nothing that the Java server cannot read: no other field, no name
//     without a number, no address with a hyphen (rule I).
//  5. A call ends with its context, and at most 256 of one handle are under way. One
//     that was abandoned may still happen later, but only if nothing has changed.
//  6. A session that the servers have given up, or whose servers were replaced, is
//     followed by a new one without a restart.
//
// What it does not do: it detects a Java twin on the same ip:port that reports, but cannot
// keep it from starting (rule I). One that starts beside us finds its time in the future,
// goes on with its own file, if it has one, and reports nothing. It does not know that a Java node of the very first
// start runs as number 0 whatever its child says, and with the name pay-3-prod one of each first start at an address
// as number 3. No fresh claim gives these numbers: restart each Java node once before a Go node adopts the child of
// one. Servers that come back with an older copy of
// their data have forgotten claims, and no node can tell (rule L). It has no TLS and no
// ACL: a process that reaches the servers may write.
package zookeeper
