package segment

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// DeletedRow stands for a node among the answers of a Board: under this name Catalog.Delete
// leaves the end of the row that it deletes. The identity of a data directory never is it.
const DeletedRow = "deleted-row"

// CheckStart returns leaf.ErrConflict if the row would begin below a number that the tag
// has had: n is the tag's notice, the zero Notice if there is none, and answers are all
// answers about the tag. A driver calls it in the transaction that creates the row, after
// the row is written and before it is committed, so that a Delete at the same moment is
// seen.
func (r NewRow) CheckStart(n Notice, answers []Answer) error {
	known, table := n.Repaired, "leaf_repair"
	if n.Regress > known {
		known = n.Regress
	}
	for _, x := range answers {
		if x.High > known {
			known, table = x.High, "leaf_repair_node"
		}
	}
	switch {
	case known > MaxMaxID:
		return fmt.Errorf("%w: tag %q has the number %d in %s, must be 0 to %d; no node wrote that: correct it", leaf.ErrConflict, r.Tag, known, table, int64(MaxMaxID))
	case r.Start < known:
		return fmt.Errorf("%w: the tag was there before: numbers of tag %q below %d are in use, so --start %d could repeat some; use --start %d or more%s",
			leaf.ErrConflict, r.Tag, known, r.Start, r.LeastStart(known), StartOfNodes())
	}
	return nil
}

// LeastStart returns the lowest start of a tag that has used the numbers below known. A tag whose numbers begin anew
// begins in the period that is now.
func (r NewRow) LeastStart(known int64) int64 {
	if first, _, before := r.beforePeriod(known, leaf.SystemRuntime().Now()); before {
		return first
	}
	return known
}

// StartOfNodes is what to add to the lowest start that is known to be safe: only a row that is
// there, or was deleted with leaf tag delete, shows where all its numbers end.
func StartOfNodes() string { return startOfNodes(generously) }

func startOfNodes(add string) string {
	return ". This start is above all that nodes have told. Where a row is gone that leaf tag delete did not delete, a node that is stopped, or cut off from the database, may know a higher number: start it, or bring it back, and run the command again when it has run for segment.sync-interval (one minute). " +
		"If one is gone with its data directory, or Java servers have taken ranges, take this start or the highest number of the tag in your own tables, whichever is higher, and use --start with " + add
}

// CheckDelete returns leaf.ErrConflict if a row with this max_id must not be deleted: below 0 it does not show where the
// numbers of the tag end, and a new row could begin below them. Drivers call it within the transaction of Catalog.Delete.
func CheckDelete(maxID int64) error {
	if maxID < 0 {
		return belowZero(maxID)
	}
	return nil
}

// DeletedEnd returns what Catalog.Delete leaves of a row on the board, if its max_id is
// maxID: the number itself, within the limits of an answer.
func DeletedEnd(maxID int64) int64 { return min(max(maxID, 0), MaxMaxID) }
