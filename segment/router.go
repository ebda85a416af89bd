package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// NamedStore is a database with its name in the tag-to-database rule. A Store that wraps one of a driver, such as to measure
// it, must have the methods of Board, too, if that has them: without them no repair of another node asks this one, and what
// it holds may be issued twice.
type NamedStore struct {
	Name  string
	Store Store
}

// TagRule sends the tags that match Pattern to the database named Store. A
// pattern is a tag name, or a prefix followed by one '*' at the end; "*" alone
// matches every tag. A Store of the form NAME,NAME*BLOCK gives each of these tags
// several databases, see Masters.
type TagRule struct {
	Pattern string
	Store   string
}

// ParseTagRule parses PATTERN=NAME or PATTERN=NAME,NAME*BLOCK. The last '=' separates,
// because a tag may contain one and a name may not.
func ParseTagRule(text string) (TagRule, error) {
	form := fmt.Sprintf("must be PATTERN=NAME, PATTERN a tag name or a prefix with * at the end; or PATTERN=NAME,NAME*BLOCK with 2 to %d different names, BLOCK %d to %d", MaxMasters, MinBlock, int64(MaxBlock))
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
	if names, _ := parseMasters(r.Store); names == nil && strings.ContainsAny(r.Store, "*,") {
		return TagRule{}, leaf.BadField("tag rule", text, form)
	}
	return r, nil
}

// Names returns the names of the rule's databases.
func (r TagRule) Names() []string {
	if names, _ := parseMasters(r.Store); names != nil {
		return names
	}
	return []string{r.Store}
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
// no rule names. A rule with several databases does not count there: it names none for
// itself. A Router never changes and is safe for concurrent use.
type Router struct {
	stores  []NamedStore
	rules   []TagRule
	target  []int      // target[i] is the database of rules[i], -1 if it has several
	masters []*Masters // masters[i] are the databases of rules[i], nil if it has one
	several bool       // a rule has several
	spread  []int      // databases without a rule
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
		var at []int
		for _, name := range rule.Names() {
			i, ok := index[name]
			if !ok {
				return nil, leaf.BadField("tag rule", rule.Pattern+"="+rule.Store, "names no configured store")
			}
			at = append(at, i)
		}
		if names, block := parseMasters(rule.Store); names != nil {
			r.target, r.masters, r.several = append(r.target, -1), append(r.masters, &Masters{Block: block, Stores: at}), true
			continue
		}
		named[at[0]] = true
		r.target, r.masters = append(r.target, at[0]), append(r.masters, nil)
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

// Route returns the index of the tag's database. It is -1 for a tag with several, of
// which each part has one, and for a tag that is unknown because no rule matches and
// every database has one.
func (r *Router) Route(tag string) int {
	if _, store := r.part(tag); store >= 0 {
		return store
	}
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

// HasMasters reports whether a rule has several databases.
func (r *Router) HasMasters() bool { return r.several }

// Masters returns the databases of a tag that lives in several, nil if it lives in one.
func (r *Router) Masters(tag string) *Masters {
	if !r.several {
		return nil
	}
	for i, rule := range r.rules {
		if !rule.Matches(tag) {
			continue
		}
		if r.masters[i] != nil {
			if _, store := r.part(tag); store >= 0 {
				return nil
			}
		}
		return r.masters[i]
	}
	return nil
}

// TagOfPart returns the tag whose part a row with this name is by the rule, "" if it is not a part.
func (r *Router) TagOfPart(name string) string {
	tag, _ := r.part(name)
	return tag
}

// part returns whose part name is, and its database; -1 if it is not a part by the rule.
func (r *Router) part(name string) (tag string, store int) {
	if !r.several {
		return "", -1
	}
	tag, m, i, ok := ParsePart(name)
	if !ok {
		return "", -1
	}
	own := r.Masters(tag)
	if own == nil || own.Block != m.Block || len(own.Stores) != len(m.Stores) {
		return "", -1
	}
	return tag, own.Stores[i]
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
