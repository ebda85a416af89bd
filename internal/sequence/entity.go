package sequence

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/spread"
)

// Sections is the number of sections of every tag. It must never change: see the comment of the package.
const Sections = spread.Sections

// MaxText is the length of the longest text that names an entity, in bytes.
const MaxText = 64

// Entity is what has numbers of its own: a number or a text. Two entities are the same if they are equal.
// The zero Entity is the number 0.
type Entity struct {
	text   string // "": the entity is a number
	number uint64
}

// Number returns the entity that is a number.
func Number(n uint64) Entity { return Entity{number: n} }

// Parse returns the entity of that name. A decimal number below 2^64 without leading zeros is a number, everything
// else a text: 1 to MaxText bytes of valid UTF-8 without U+0000, compared byte by byte. Error: leaf.ErrBadRequest.
func Parse(name string) (Entity, error) {
	if n, ok := spread.Number(name); ok {
		return Number(n), nil
	}
	switch {
	case name == "" || len(name) > MaxText:
		return Entity{}, leaf.BadField("entity", name, fmt.Sprintf("has %d bytes, must have 1 to %d", len(name), MaxText))
	case !utf8.ValidString(name):
		return Entity{}, leaf.BadField("entity", name, "must be valid UTF-8")
	case strings.IndexByte(name, 0) >= 0:
		return Entity{}, leaf.BadField("entity", name, "must not contain the character U+0000")
	}
	return Entity{text: name}, nil
}

// String returns the name of the entity, from which Parse makes the same entity.
func (e Entity) String() string {
	if e.text != "" {
		return e.text
	}
	return strconv.FormatUint(e.number, 10)
}

// Section returns the section of the entity, 0 to Sections-1. It is the same on every node and in every version.
func (e Entity) Section() int {
	x := e.number
	if e.text != "" {
		x = spread.Sum(e.text)
	}
	return spread.SectionOf(x)
}
