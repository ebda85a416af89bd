package grpcd

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// mend replaces what is not UTF-8 in the texts of m, as JSON does. A message with such a
// text cannot be sent at all, and one row that somebody wrote past every check, or the
// path of a data directory, would hide all others.
func mend(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			mendList(f.Kind(), v.List())
		case f.Kind() == protoreflect.MessageKind:
			mend(v.Message())
		case f.Kind() == protoreflect.StringKind && !utf8.ValidString(v.String()):
			m.Set(f, mended(v))
		}
		return true
	})
}

func mendList(kind protoreflect.Kind, list protoreflect.List) {
	for i := range list.Len() {
		switch v := list.Get(i); {
		case kind == protoreflect.MessageKind:
			mend(v.Message())
		case kind == protoreflect.StringKind && !utf8.ValidString(v.String()):
			list.Set(i, mended(v))
		}
	}
}

func mended(v protoreflect.Value) protoreflect.Value {
	return protoreflect.ValueOfString(strings.ToValidUTF8(v.String(), "\uFFFD"))
}
