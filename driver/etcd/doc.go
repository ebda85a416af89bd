// Package etcd keeps tags, worker-ID claims, the cluster fence of segment mode and the
// directory of nodes in etcd: [Store] is a segment.Store, [Records] is a worker.Records, of
// which worker.NewPool makes a registry of leased numbers, [Fence] is a fence.Cluster, and
// [Directory] is a discovery.Directory.
//
// Keys of the store, below its prefix:
//
//	owner                  the cluster's ID, and which tag rule the store belongs to
//	rows/<tag>             the row of a tag with its options
//	limits/tags/<tag>      the limit of a tag; limits/clients/<name>: of a client
//	notices/<tag>          the board: what was asked, and where numbers end after a regress
//	answers/<tag>/<node>   the board: what a node knows of the tag, whose name is escaped
//	nodes/<node>           the board: a node that takes ranges; on an etcd lease
//	forgotten              the board: the last question that was removed
//	audit/<id>             an entry of the audit log; the digits of its ID are turned around
//	tokens/<name>          a named token
//	agreed/<name>          what all nodes must have in common
//	slots/                 the owners of tags in strict order; below it are keys as those of the registry
//
// Keys of the registry, below the prefix:
//
//	namespace      name, fingerprint, and from when on unused numbers may issue
//	incarnation    a random text, made with the namespace
//	given          its version counts the numbers that got their first record
//	id             the ID of the registry, which the namespace does not end; beside a store, owner has it
//	claims/<n>     the holder of number n
//	bounds/<n>     T of number n, in Unix ms
//	peers/<nonce>  an announced process; on an etcd lease
//
// Keys of the fence, below its prefix:
//
//	incarnation          a random text, made with the namespace
//	entries/<inc>/       the mark that the entries of this incarnation are there
//	entries/<inc>/<tag>  the highest end of a range of the tag
//
// Keys of the directory, below its prefix:
//
//	<id>  the entry of a node; on an etcd lease
//
// It promises:
//
//  1. Each write is one transaction whose conditions name what the decision was made
//     from: the revisions of claim and T, and the text of the claim.
//  2. A condition cannot come true again by accident. Revisions are never reused,
//     also not after a deletion. A store that lost its data, or was restored from a
//     snapshot, counts from an earlier revision again; but the text of a claim holds
//     a nonce that no other process has, and of a row the whole text is compared.
//  3. Rows, claims, T and fences are never on a lease: they outlive every session (rule D).
//  4. Reads are linearizable: what was acknowledged to any client before is seen.
//  5. Every call ends soon after its context, and no lock is held over a call. The
//     first call connects; connections that died are noticed and re-made, within
//     about 15 s if they died in silence, and at once where etcd tells.
//  6. A value that this version does not understand is never guessed at. The namespace
//     is then worker.ErrForeign with the name of the key, a claim or T is the Damage
//     of its number, a row is leaf.ErrInvalidRow, the fence and the board are an error; the
//     directory leaves it out and names it in the log. A field that this version does not
//     know is overlooked, and kept in rows and limits: one that changes what the others mean
//     comes with another format.
//  7. Each answer names its etcd cluster. While a second cluster has answered within the last minute, every call
//     fails. When both answer in turn, the error is worker.ErrLost: the endpoints name two clusters.
//
// It does not compact or defragment, which etcd must do by itself
// (--auto-compaction-retention), or it is full some day. It needs no rights outside its prefix. It
// works with etcd 3.4 and later.
package etcd
