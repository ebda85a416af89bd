package sqldb

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// ruleState is what a database records of the tag rule. Nodes load by a rule that is recorded, and
// by no other state.
type ruleState int

const (
	noRecord ruleState = iota
	recorded           // a rule
	leftOut            // a rule has left the database out
	begun              // a command changes the rule
	decided            // a command is about to record a rule, and no other one may follow
)

// ruleRecord is a state with what belongs to it.
type ruleRecord struct {
	state ruleState

	// With recorded and leftOut the rule; of a database that is left out, with its last name.
	// With begun and decided that of the state before, which the database had without the command.
	binding segment.Binding
	before  ruleState

	command  string // with begun and decided: whose it is now
	next     string // with decided: the rule to come
	nextName string // with decided: of the database in the rule to come, see nameSum
	decision string // with all but noRecord, and begun after that: the command that decided first
	was      string // with leftOut, and begun after that: the rule before, in which the database had its name
}

// Texts that are recorded in place of a rule.
const (
	noRule       = "none: "
	begunRule    = noRule + "leaf schema apply --accept-rule is changing it "
	decidedRule  = noRule + "leaf schema apply --accept-rule is recording another "
	leftOutRule  = noRule + "a newer rule leaves the database out "
	wasRule      = "; was "
	emptyElement = "-"
)

// base is the record that the database had before a command began.
func (r ruleRecord) base() ruleRecord {
	switch r.state {
	case begun:
		r.state, r.before, r.command = r.before, noRecord, ""
	case decided: // what the rule before that one was does not matter any more
		r = ruleRecord{state: r.before, binding: r.binding}
	}
	return r
}

// record returns what is written: nil for noRecord.
func (r ruleRecord) record() *stored {
	if r.state == noRecord {
		return nil
	}
	b := stored{Binding: r.binding}
	var text string
	switch r.state {
	case recorded:
		b.decision = r.decision
	case leftOut:
		b.Rule = leftOutRule + elements(b.Rule, r.decision, r.was)
	case begun:
		text = begunRule + elements(r.command)
	case decided:
		text = decidedRule + elements(r.command, r.decision, r.next, r.nextName)
	}
	if text != "" {
		was := r.base().record()
		if was == nil {
			was = &stored{Binding: segment.Binding{Store: emptyElement, Rule: emptyElement, Stores: emptyElement}}
		}
		was.Rule = text + wasRule + was.Rule
		return was
	}
	return &b
}

// recordOf reads what was written. It is leaf.ErrConflict if another version wrote it.
func recordOf(b *stored) (r ruleRecord, err error) {
	if b == nil {
		return r, nil
	}
	r.binding = b.Binding
	if !strings.HasPrefix(b.Rule, noRule) {
		r.state, r.decision = recorded, b.decision
		return r, nil
	}
	text, was, changing := strings.Cut(b.Rule, wasRule)
	switch {
	case !changing && parseElements(text, leftOutRule, &r.binding.Rule, &r.decision, &r.was):
		r.state = leftOut
		return r, nil
	case changing && parseElements(text, begunRule, &r.command):
		r.state = begun
	case changing && parseElements(text, decidedRule, &r.command, &r.decision, &r.next, &r.nextName):
		r.state = decided
	default:
		return r, fmt.Errorf("%w: leaf_meta has %q in place of a tag rule, which another version of leaf wrote: finish the change of the rule with that version", leaf.ErrConflict, b.Rule)
	}
	if was == emptyElement {
		r.binding = segment.Binding{}
		return r, nil
	}
	earlier, err := recordOf(&stored{segment.Binding{Store: b.Store, Rule: was, Stores: b.Stores}, b.decision})
	r.before, r.binding = earlier.state, earlier.binding
	if r.state == begun {
		r.decision, r.was = earlier.decision, earlier.was
	}
	return r, err
}

// elements writes words, of which some may be empty.
func elements(words ...string) string {
	for i, word := range words {
		words[i] = cmp.Or(word, emptyElement)
	}
	return strings.Join(words, " ")
}

// parseElements reads what elements wrote behind a prefix.
func parseElements(text, prefix string, words ...*string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	found := strings.Split(rest, " ")
	if !ok || len(found) != len(words) {
		return false
	}
	for i, word := range found {
		if word != emptyElement {
			*words[i] = word
		} else {
			*words[i] = ""
		}
	}
	return true
}

// nameSum stands for the name of a database, which may be as long as a record.
func nameSum(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}
