// Package datadir is a node's own durable folder on a local filesystem. It
// implements fence.Disk.
//
// It promises: (1) one process at a time: Open takes an exclusive lock on the
// folder and keeps it until Close or the end of the process, however that comes;
// (2) a file written by Replace is the old one or the new one after a crash at any
// moment, never a torn one; (3) the folder and its files are readable by one owner
// only, that of the folder, also where root has made a file; (4) the folder has an
// identity, made when it is first opened; (5) no write succeeds once the folder or a file
// that unique IDs rest on was deleted or replaced: Replace, Append and Sync look, and so does Check.
//
// It does not notice a copy: two copies of one folder used at the same time have
// the same identity and know nothing of each other (rule L). It relies on
// fsync reaching the medium, and on a filesystem whose flock works between the
// processes that could share it, which network filesystems may not offer.
package datadir
