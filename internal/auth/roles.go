package auth

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/leaf-idgen/leaf"
)

// Names of roles, as texts have them.
const (
	RoleIssue     = "issue"     // IDs of all tags and of snowflake mode; issue:PATTERN: of tags
	RoleSnowflake = "snowflake" // IDs of snowflake mode
	RoleRead      = "read"      // what a node shows without changing anything
	RoleAdmin     = "admin"     // administration; read with it
)

// Roles are what a client or an administrator may do. The zero value may do nothing.
type Roles struct {
	All       bool     // issue all tags
	Tags      []string // issue these: exact names, or prefixes that end in *
	Snowflake bool
	Read      bool
	Admin     bool
}

const (
	maxPatterns   = 100
	maxWords      = 4096
	patternLength = leaf.MaxTagLen + 1
)

// ParseRoles reads words such as "issue", "issue:order*", "snowflake", "read" and "admin".
func ParseRoles(words []string) (r Roles, err error) {
	for _, word := range words {
		role, pattern, some := strings.Cut(word, ":")
		switch {
		case some && role == RoleIssue:
			if err := checkPattern(pattern); err != nil {
				return r, err
			}
			r.Tags = append(r.Tags, pattern)
		case word == RoleIssue:
			r.All, r.Snowflake = true, true
		case word == RoleSnowflake:
			r.Snowflake = true
		case word == RoleRead:
			r.Read = true
		case word == RoleAdmin:
			r.Admin, r.Read = true, true
		default:
			return r, leaf.BadField("role", word, "must be issue, issue:PATTERN, snowflake, read or admin")
		}
	}
	if len(words) == 0 {
		return r, leaf.BadField("role", "", "must be given")
	}
	if len(r.Tags) > maxPatterns {
		return r, leaf.BadField("tags", len(r.Tags), fmt.Sprintf("must be at most %d patterns", maxPatterns))
	}
	if len(strings.Join(words, " ")) > maxWords {
		return r, leaf.BadField("tags", words[0], fmt.Sprintf("must be together at most %d bytes with the other roles", maxWords))
	}
	return r, nil
}

func checkPattern(pattern string) error {
	odd := strings.ContainsFunc(pattern, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar })
	if pattern == "" || odd || len([]rune(pattern)) > patternLength || strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
		return leaf.BadField("tags", pattern, "must be a tag, or the beginning of tags and *, without spaces")
	}
	return nil
}

// Words is the opposite of ParseRoles.
func (r Roles) Words() (words []string) {
	for _, pattern := range r.Tags {
		words = append(words, RoleIssue+":"+pattern)
	}
	switch {
	case r.All:
		words = append(words, RoleIssue)
	case r.Snowflake:
		words = append(words, RoleSnowflake)
	}
	switch {
	case r.Admin:
		words = append(words, RoleAdmin)
	case r.Read:
		words = append(words, RoleRead)
	}
	return words
}

// issues reports whether a tag is one of those that may be issued.
func (r *Roles) issues(tag string) bool {
	if r.All {
		return true
	}
	for _, pattern := range r.Tags {
		if last := len(pattern) - 1; pattern[last] == '*' && strings.HasPrefix(tag, pattern[:last]) || pattern == tag {
			return true
		}
	}
	return false
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName returns leaf.ErrBadRequest for a text that is no name of a token.
func CheckName(name string) error {
	if tokenName.MatchString(name) {
		return nil
	}
	return leaf.BadField("name", name, "must be 1 to 64 letters, digits, dots, hyphens and underlines, and begin with a letter or digit")
}
