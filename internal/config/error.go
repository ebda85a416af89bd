package config

import (
	"fmt"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// Error is one thing that is wrong with the configuration. It matches
// leaf.ErrBadRequest. [Load] and [Config.Validate] return all they find, joined
// with errors.Join, one line each.
type Error struct {
	Key    string // the key as the user wrote it; "" if the error is not about one
	Value  string // without passwords; those of URLs are hidden in the text anyway
	Source string // where it was set: "--http-addr", "LEAF_HTTP_ADDR" or "leaf.yaml:3"; "" unknown
	Limit  string // what is allowed, or what to do
}

// Error returns one line with key, value, place and limit.
func (e *Error) Error() string {
	const longest = 200 // enough to recognise a value, too little to flood a terminal
	var b strings.Builder
	if e.Key != "" {
		b.WriteString(e.Key)
		if e.Value != "" {
			value := RedactText(e.Value)
			if len(value) > longest {
				value = value[:longest] + "..."
			}
			fmt.Fprintf(&b, "=%q", value)
		}
		if e.Source != "" {
			fmt.Fprintf(&b, " (%s)", e.Source)
		}
	} else {
		b.WriteString(e.Source)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Limit)
	return b.String()
}

// Unwrap makes a Error match leaf.ErrBadRequest.
func (e *Error) Unwrap() error { return leaf.ErrBadRequest }
