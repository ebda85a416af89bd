package sqldb

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/segment"
)

// rulePast is what a record says of the rules that a database had. While commands change the rule,
// it is written in place of one, so that the next command finds it when one did not end. A database
// that was left out has no past: its change has ended in all databases that have the newer rule.
type rulePast struct {
	command string   // that changes the rule, "" if none does
	rule    string   // that the recorded names are from: the last one that nodes can have, or the one to come; "" for none
	parts   []string // of rules: what the database was, and what commands meant to make of it; the last ones
}

// Texts of a rule that no node has.
const (
	noRule      = "none: "
	unboundRule = noRule + "leaf schema apply --accept-rule is changing it "
	leftOutRule = noRule + "a newer rule leaves the database out"
	wasRule     = "; was "
)

// maxParts is how many parts are kept: a record holds 512 characters.
const maxParts = 8

// pastOf reads what was recorded; nil is nothing.
func pastOf(b *segment.Binding) (p rulePast) {
	if b == nil {
		return p
	}
	text, changing := strings.CutPrefix(b.Rule, unboundRule)
	switch {
	case changing:
		var was string
		p.command, was, _ = strings.Cut(text, wasRule)
		if words := strings.Split(was, " "); len(words) > 1 {
			p.rule, p.parts = words[0], words[1:]
		}
	case b.Rule != "" && !strings.HasPrefix(b.Rule, noRule):
		p.rule, p.parts = b.Rule, []string{part(*b)}
	}
	return p
}

// String is what is recorded in place of a rule while a command changes it.
func (p rulePast) String() string {
	return unboundRule + p.command + wasRule + strings.Join(append([]string{p.rule}, p.parts...), " ")
}

// add notes what a command means to make of the database; without a name, to leave it out.
func (p *rulePast) add(b segment.Binding) {
	if b.Store != "" {
		p.parts = append(slices.Clone(p.parts), part(b))
		p.parts = p.parts[max(0, len(p.parts)-maxParts):]
	}
}

// part stands for a rule and a name in it.
func part(b segment.Binding) string {
	sum := sha256.Sum256([]byte(b.Rule + "\n" + b.Store))
	return hex.EncodeToString(sum[:8])
}
