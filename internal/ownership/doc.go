// Package ownership leaves what root makes to the user of the node.
//
// A command of an administrator who is root must not leave a file that the node cannot read.
// [Inherit] is called for each file that a command can make or replace in place of the node. [Of] tells who owns a file.
package ownership
