package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// checkNames refuses the change if it does not have each database of the rules before. One that
// it does not close serves on for nodes with the old rule, and its rows are not compared.
func (r *ruleChange) checkNames() error {
	if err := r.checkReplaced(); err != nil {
		return err
	}
	decision := r.decision()
	for i, c := range r.begun() {
		if by := c.LeftOutBy(); by != nil {
			if err := r.checkLeftOut(i, *by); err != nil {
				return err
			}
		}
		before := c.Before()
		switch {
		case before == nil || before.Rule == "": // it belonged to no rule, or was the only database
			continue
		case c.Decision() != "" && r.isRecording(decision): // all databases of the rule before are closed
			continue
		case before.Stores == "":
			return fmt.Errorf("%w: store %q does not say which databases its rule has, because a version before recorded it. "+
				"Start one node with that rule, which completes the record, stop it, and run the command again", leaf.ErrConflict, r.name(i))
		}
		for name := range strings.SplitSeq(before.Stores, ",") {
			if err := r.checkName(i, before.Rule, name); err != nil {
				return err
			}
		}
	}
	return r.checkLost()
}

// checkLost refuses a name of --lost that stands for more databases than it was given times: rules of
// several clusters can have one of that name each, and the operator may think of one of them.
func (r *ruleChange) checkLost() error {
	for _, name := range r.lost {
		var rules []*sqldb.RuleChange // one database of each rule that misses it
		var of []string
		for i, c := range r.begun() {
			before := c.Before()
			if before == nil || before.Rule == "" || !slices.Contains(strings.Split(before.Stores, ","), name) || r.has(i, before.Rule, name) {
				continue
			}
			same := func(o *sqldb.RuleChange) bool { return o.Before().Rule == before.Rule && o.SameCommand(c) }
			if !slices.ContainsFunc(rules, same) {
				rules, of = append(rules, c), append(of, fmt.Sprintf("%q", r.name(i)))
			}
		}
		if given := len(slices.DeleteFunc(slices.Clone(r.lost), func(n string) bool { return n != name })); len(of) > given {
			return fmt.Errorf("%w: --lost %s stands for one database, and each of the rules that the stores %s have now is missing one of that name. "+
				"Add --leave-out with the URL of each that can be reached; if no node can ever reach %d of them again, give --lost %s %[4]d times", leaf.ErrConflict, name, strings.Join(of, " and "), len(of), name)
		}
	}
	return nil
}

// isRecording reports whether the command of a decision has recorded the rule in a database already.
func (r *ruleChange) isRecording(decision string) bool {
	for _, c := range r.begun() {
		if c.IsRecordedBy(decision) {
			return true
		}
	}
	return false
}

// checkReplaced refuses a database on which an earlier command with the rule has not decided, if that
// command decided on one that comes behind it in the order, or has recorded the rule in any: it is
// another database now than that command had.
func (r *ruleChange) checkReplaced() error {
	last, decision := r.lastDecided(), r.decision()
	if last < 0 {
		return nil
	}
	isRecording := r.isRecording(decision)
	for i, c := range r.begun() {
		name := r.to(i).Store
		if r.isLeftOut(i) || c.Decision() == decision || c.IsRecordedBy(decision) || !isRecording && r.comesAfter(i, last) || slices.Contains(r.lost, name) {
			continue
		}
		return fmt.Errorf("%w: the command that was interrupted had come to store %q, and had done nothing in store %q before: that one is another database than that command had, perhaps a copy. "+
			"Correct its URL, or, if no node can ever reach the database that it had, add --lost %s", leaf.ErrConflict, r.name(last), r.name(i), name)
	}
	return nil
}

// checkName refuses the change if it does not close the database that a rule, which the database i
// had, calls by a name.
func (r *ruleChange) checkName(i int, rule, name string) error {
	if slices.Contains(r.lost, name) || r.has(i, rule, name) {
		return nil
	}
	hint, other := "", ""
	for j, c := range r.begun() {
		before, by := c.Before(), c.LeftOutBy()
		switch {
		case rule == r.to(j).Rule && r.to(j).Store == name && r.changes[i].IsRecordedBy(c.Decision()):
			return nil // the earlier command has recorded the rule in the database i, and not yet in this one
		case before != nil && before.Store == name:
			other = r.name(j)
			hint = fmt.Sprintf(" Store %q is another one: it has the same name by another rule, perhaps of another cluster.", other)
		case by != nil && by.Store == name:
			other = r.name(j)
			hint = fmt.Sprintf(" Store %q had that name, but a newer rule leaves it out: if the change to that rule was interrupted, run the command with that rule.", other)
		}
	}
	if other != "" { // the rules of two moments have a database of this name each, and that of one moment is gone
		hint += fmt.Sprintf(" If a backup has brought back store %q or %q, add --lost %s.", r.name(i), other, name)
	}
	return fmt.Errorf("%w: by the rule that store %q has now, tags are also in store %q, which the command does not name: a node with that rule could still issue from it.%s "+
		"Add --leave-out with its URL, or, if no node can ever reach it again, --lost %s", leaf.ErrConflict, r.name(i), name, hint, name)
}

// has reports whether the command has begun with the database that a rule, which the database i had,
// calls by a name. What an interrupted command has left out was recorded by an earlier one.
func (r *ruleChange) has(i int, rule, name string) bool {
	for _, c := range r.begun() {
		if c.Was(rule, name, r.decision()) && (c.LeftOutBy() != nil || c.SameCommand(r.changes[i])) {
			return true
		}
	}
	return false
}

// checkLeftOut refuses the change if the database i, which a rule has left out, would be used again
// without the databases that have its tags since.
func (r *ruleChange) checkLeftOut(i int, by segment.Binding) error {
	if r.isLeftOut(i) && by.Rule == r.to(i).Rule { // the same command, which was interrupted
		return nil
	}
	for _, c := range r.begun() {
		if before := c.Before(); before != nil && before.Rule != "" { // of whose rule all databases are here
			return nil
		}
	}
	var missing []string
	for name := range strings.SplitSeq(by.Stores, ",") {
		if !slices.Contains(r.lost, name) && !r.has(i, by.Rule, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: store %q was left out by another rule, whose databases have had its tags since: the command has not store %s of that rule. "+
		"If the change to that rule was interrupted, run the command with that rule. Else add --leave-out with the URL of each, or, if no node can ever reach it again, --lost %s",
		leaf.ErrConflict, r.name(i), strings.Join(missing, ", "), strings.Join(missing, " --lost "))
}
