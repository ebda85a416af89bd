package httpd_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// document is a JSON document that schemas refer into.
type document map[string]any

// resolve returns the object that a reference like "#/components/schemas/ID" names, or v
// itself if it is none.
func (d document) resolve(v any) (object map[string]any, ref string) {
	object, _ = v.(map[string]any)
	ref, _ = object["$ref"].(string)
	if ref == "" {
		return object, ""
	}
	at := any(map[string]any(d))
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	object, _ = at.(map[string]any)
	if object == nil {
		panic("nothing is at " + ref)
	}
	return object, ref
}

// silent are the keywords that forbid nothing.
var silent = []string{"description", "default"}

// faults returns what is wrong with value by schema, which may use a part of JSON Schema
// only: a keyword that is not known here is a fault, so that none is believed to hold.
func (d document) faults(schema, value any, at string) (faults []string) {
	s, _ := d.resolve(schema)
	if s == nil {
		return []string{at + ": no schema"}
	}
	complain := func(format string, args ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, args...)) }
	text, isText := value.(string)
	number, isNumber := value.(float64)
	list, isList := value.([]any)
	object, isObject := value.(map[string]any)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		arg := s[keyword]
		limit, _ := arg.(float64)
		switch keyword {
		case "type":
			_, isBool := value.(bool)
			is := map[any]bool{"string": isText, "integer": isNumber && number == float64(int64(number)), "boolean": isBool, "array": isList, "object": isObject}
			if !is[arg] {
				complain("%v is no %v", value, arg)
			}
		case "const":
			if !reflect.DeepEqual(value, arg) {
				complain("%v is not %v", value, arg)
			}
		case "enum":
			if !slices.ContainsFunc(arg.([]any), func(v any) bool { return reflect.DeepEqual(v, value) }) {
				complain("%v is none of %v", value, arg)
			}
		case "pattern":
			if isText && !regexp.MustCompile(arg.(string)).MatchString(text) {
				complain("%q does not match %v", text, arg)
			}
		case "minLength":
			if isText && utf8.RuneCountInString(text) < int(limit) {
				complain("%q is shorter than %v", text, arg)
			}
		case "maxLength":
			if isText && utf8.RuneCountInString(text) > int(limit) {
				complain("%.20q is longer than %v", text, arg)
			}
		case "minimum":
			if isNumber && number < limit {
				complain("%v is below %v", number, arg)
			}
		case "maximum":
			if isNumber && number > limit {
				complain("%v is above %v", number, arg)
			}
			if limit > math.MaxInt32 && s["format"] != "int64" {
				complain("generated code can take a number up to %v for one of 32 bits, and cut it off", arg)
			}
		case "format":
			if arg != "int64" || s["type"] != "integer" {
				complain("the schema's format is not int64, of an integer")
			}
		case "minItems":
			if isList && len(list) < int(limit) {
				complain("%d items, fewer than %v", len(list), arg)
			}
		case "maxItems":
			if isList && len(list) > int(limit) {
				complain("%d items, more than %v", len(list), arg)
			}
		case "items":
			for i, item := range list {
				faults = append(faults, d.faults(arg, item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		case "required":
			for _, name := range arg.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					complain("lacks %v", name)
				}
			}
		case "properties":
			for name, schema := range arg.(map[string]any) {
				if v, ok := object[name]; ok {
					faults = append(faults, d.faults(schema, v, at+"."+name)...)
				}
			}
		case "additionalProperties":
			if arg != false {
				complain("the schema's additionalProperties is not false")
			}
			known, _ := s["properties"].(map[string]any)
			for name := range object {
				if known[name] == nil {
					complain("unknown member %q", name)
				}
			}
		case "oneOf":
			fit := 0
			var all []string
			for _, schema := range arg.([]any) {
				bad := d.faults(schema, value, at)
				all = append(all, bad...)
				if len(bad) == 0 {
					fit++
				}
			}
			if fit != 1 {
				complain("fits %d of %d schemas: %v", fit, len(arg.([]any)), all)
			}
		default:
			if !slices.Contains(silent, keyword) {
				complain("the schema's keyword %q is not known to this test", keyword)
			}
		}
	}
	return faults
}

// TestSchemaChecker: every keyword can fail.
func TestSchemaChecker(t *testing.T) {
	t.Parallel()
	d := document{"components": map[string]any{"digits": map[string]any{"type": "string", "pattern": "^[0-9]+$"}}}
	type object = map[string]any
	for _, tt := range []struct {
		schema    object
		good, bad any
	}{
		{object{"type": "integer"}, 5.0, 5.5},
		{object{"type": "string"}, "", 5.0},
		{object{"type": "boolean"}, false, "false"},
		{object{"type": "array"}, []any{}, object{}},
		{object{"type": "object"}, object{}, nil},
		{object{"const": "a"}, "a", "b"},
		{object{"enum": []any{"a", "b"}}, "b", "c"},
		{object{"pattern": "^a$"}, "a", "ab"},
		{object{"minLength": 2.0}, "éé", "é"},
		{object{"maxLength": 2.0}, "éé", "ééé"},
		{object{"minimum": 1.0}, 1.0, 0.0},
		{object{"maximum": 1.0}, 1.0, 2.0},
		{object{"minItems": 1.0}, []any{1.0}, []any{}},
		{object{"maxItems": 1.0}, []any{1.0}, []any{1.0, 2.0}},
		{object{"items": object{"type": "string"}}, []any{"a"}, []any{"a", 1.0}},
		{object{"required": []any{"a"}}, object{"a": nil}, object{"b": nil}},
		{object{"properties": object{"a": object{"type": "string"}}}, object{"b": 1.0}, object{"a": 1.0}},
		{object{"properties": object{"a": object{}}, "additionalProperties": false}, object{"a": 1.0}, object{"b": 1.0}},
		{object{"oneOf": []any{object{"type": "string"}, object{"const": "a"}}}, "b", "a"},
		{object{"oneOf": []any{object{"type": "string"}, object{"const": 1.0}}}, 1.0, 2.0},
		{object{"$ref": "#/components/digits"}, "12", "1a"},
	} {
		if faults := d.faults(tt.schema, tt.good, ""); len(faults) > 0 {
			t.Errorf("%v refuses %v: %v", tt.schema, tt.good, faults)
		}
		if faults := d.faults(tt.schema, tt.bad, ""); len(faults) == 0 {
			t.Errorf("%v allows %v", tt.schema, tt.bad)
		}
	}
	if faults := d.faults(object{"uniqueItems": true}, 1.0, ""); len(faults) == 0 {
		t.Error("an unknown keyword is believed")
	}
}
