package config

import (
	"reflect"
	"slices"
	"strings"
)

// Difference is a key whose values differ, as people may see them: two passwords look the same.
type Difference struct {
	Key  string `json:"key"`
	Now  string `json:"now"`
	Then string `json:"then"`
}

// Changed returns the keys whose values differ. A key that names the file of
// another key's value is not one of them; that other key is.
func Changed(now, next Config) (differ []Difference) {
	was, is := reflect.ValueOf(now), reflect.ValueOf(next)
	for _, k := range Keys() {
		if k.content != "" {
			continue
		}
		before, after := was.FieldByIndex(k.index), is.FieldByIndex(k.index)
		if !reflect.DeepEqual(before.Interface(), after.Interface()) {
			differ = append(differ, Difference{k.Name, k.public(before), k.public(after)})
		}
	}
	return differ
}

// public is format without secrets.
func (k Key) public(v reflect.Value) string {
	if k.List {
		return strings.Join(redactAll(k, v.Interface().([]string)), ListSeparator)
	}
	return redactAll(k, []string{k.format(v)})[0]
}

// With returns c with the values that next has for some keys.
func (c Config) With(next Config, keys ...string) Config {
	to, from := reflect.ValueOf(&c).Elem(), reflect.ValueOf(next)
	for _, k := range Keys() {
		if k.content == "" && slices.Contains(keys, k.Name) {
			to.FieldByIndex(k.index).Set(from.FieldByIndex(k.index))
		}
	}
	return c
}
