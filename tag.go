package leaf

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxTagLen is the longest tag name in characters (Unicode code points), the
// width of the column biz_tag.
const MaxTagLen = 128

// ValidateTag reports whether name can be a tag: 1 to MaxTagLen characters of
// valid UTF-8 without U+0000, which PostgreSQL cannot store. Everything else,
// spaces and slashes included, is part of the name and compared byte by byte. The
// error is ErrBadRequest.
func ValidateTag(name string) error {
	switch {
	case name == "":
		return BadField("tag", name, fmt.Sprintf("must have 1 to %d characters", MaxTagLen))
	case len(name) > MaxTagLen && utf8.RuneCountInString(name) > MaxTagLen:
		return BadField("tag", name, fmt.Sprintf("has %d characters, must have 1 to %d", utf8.RuneCountInString(name), MaxTagLen))
	case !utf8.ValidString(name):
		return BadField("tag", name, "must be valid UTF-8")
	case strings.IndexByte(name, 0) >= 0:
		return BadField("tag", name, "must not contain the character U+0000")
	}
	return nil
}
