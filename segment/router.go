package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// NamedStore is a database with its name in the tag-to-database rule.
type NamedStore struct {
	Name  string
	Store Store
}

// TagRule sends the tags that match Pattern to the database named Store. A
// pattern is a tag name, or a prefix followed by one '*' at the end; "*" alone
// matches every tag.
type TagRule struct {
	Pattern string
	Store   string
}

// ParseTagRule parses PATTERN=NAME. The last '=' separates, because a tag may
// contain one and a name may not.
func ParseTagRule(text string) (TagRule, error) {
	const form = "must be PATTERN=NAME, PATTERN a tag name or a prefix with * at the end"
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return TagRule{}, leaf.BadField("tag rule", text, form)
	}
	r := TagRule{Pattern: text[:i], Store: text[i+1:]}
	prefix := strings.TrimSuffix(r.Pattern, "*")
	if strings.Contains(prefix, "*") || r.Store == "" {
		return TagRule{}, leaf.BadField("tag rule", text, form)
	}
	if r.Pattern != "*" {
		if err := leaf.ValidateTag(prefix); err != nil {
			return TagRule{}, leaf.BadField("tag rule", text, form)
		}
	}
	return r, nil
}

// Matches reports whether the rule applies to tag.
func (r TagRule) Matches(tag string) bool {
	if prefix, ok := strings.CutSuffix(r.Pattern, "*"); ok {
		return strings.HasPrefix(tag, prefix)
	}
	return tag == r.Pattern
}

// Router divides tags over databases. The first rule that matches decides; the
// other tags are spread by the FNV-1a hash of their name over the databases that
// no rule names. A Router never changes and is safe for concurrent use.
type Router struct {
	stores []NamedStore
	rules  []TagRule
	target []int // target[i] is the database of rules[i]
	spread []int // databases without a rule
}

// maxNames is what a database records of the names of all databases, in bytes.
const maxNames = 500

// NewRouter checks names and rules. One database needs no rule.
func NewRouter(stores []NamedStore, rules []TagRule) (*Router, error) {
	if len(stores) == 0 {
		return nil, leaf.BadField("stores", 0, "at least one database is needed")
	}
	r := &Router{stores: stores, rules: rules}
	index := make(map[string]int, len(stores))
	for i, s := range stores {
		if s.Name == "" || strings.ContainsAny(s.Name, "=*,\n") {
			return nil, leaf.BadField("store name", s.Name, "must not be empty or contain = * , or a line break")
		}
		if _, ok := index[s.Name]; ok {
			return nil, leaf.BadField("store name", s.Name, "is used twice")
		}
		index[s.Name] = i
	}
	if names := r.names(); len(names) > maxNames {
		return nil, leaf.BadField("store names", len(names), fmt.Sprintf("must have %d bytes or fewer together, with a comma between two", maxNames))
	}
	named := make([]bool, len(stores))
	for _, rule := range rules {
		i, ok := index[rule.Store]
		if !ok {
			return nil, leaf.BadField("tag rule", rule.Pattern+"="+rule.Store, "names no configured store")
		}
		named[i] = true
		r.target = append(r.target, i)
	}
	for i := range stores {
		if !named[i] {
			r.spread = append(r.spread, i)
		}
	}
	return r, nil
}

// Stores returns the databases in the order of NewRouter.
func (r *Router) Stores() []NamedStore { return r.stores }

// Route returns the index of the tag's database, or -1 if no rule matches and
// every database has one: such a tag is unknown.
func (r *Router) Route(tag string) int {
	for i, rule := range r.rules {
		if rule.Matches(tag) {
			return r.target[i]
		}
	}
	switch len(r.spread) {
	case 0:
		return -1
	case 1:
		return r.spread[0]
	}
	h := fnv.New64a()
	h.Write([]byte(tag))
	return r.spread[h.Sum64()%uint64(len(r.spread))]
}

// Binding returns what the database at index i records of the rule.
func (r *Router) Binding(i int) Binding {
	return Binding{Store: r.stores[i].Name, Rule: r.Fingerprint(), Stores: r.names()}
}

func (r *Router) names() string {
	names := make([]string, len(r.stores))
	for i, s := range r.stores {
		names[i] = s.Name
	}
	return strings.Join(names, ",")
}

// Fingerprint identifies the division: names in order and rules in order. Two
// nodes with one fingerprint send every tag to the database of the same name. It
// is empty for one database without rules.
func (r *Router) Fingerprint() string {
	if len(r.stores) == 1 && len(r.rules) == 0 {
		return ""
	}
	h := sha256.New()
	fmt.Fprintln(h, "leaf tag rule 1") // a change of Route's meaning changes this line
	for _, s := range r.stores {
		fmt.Fprintf(h, "store %q\n", s.Name)
	}
	for _, rule := range r.rules {
		fmt.Fprintf(h, "rule %q %q\n", rule.Pattern, rule.Store)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
