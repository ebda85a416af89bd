package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Key is one configuration key, as defined by the tags of [Config].
type Key struct {
	Name    string // as in the documentation, with a dot after its section: "http.addr"
	Title   string // heading of its section, "" outside the sections
	Help    string
	Default string // as a user would write it, "" if there is none or it depends on the machine
	Limit   string // what values are allowed, as it follows "must be": "1 to 1000000"
	Hint    string // stands for the value in help texts: "HOST:PORT"
	Secret  bool   // values may hold a password, and are printed without it
	Bool    bool   // true or false; as a flag it needs no value
	List    bool   // may have several values
	Command bool   // commands read it, and a node does not

	SecretFile bool // the value is the path of a file that holds secrets

	index    []int // of the field, for reflect.Value.FieldByIndex
	typ      reflect.Type
	min, max int64 // both 0: unbounded
	oneof    []string

	secretPath bool // all but scheme and host is secret
	secretAll  bool // the whole value is

	content string // the value is a file that holds the value of this key; "": it is no such key
}

// Env returns the name of the environment variable: LEAF_HTTP_ADDR.
func (k Key) Env() string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(k.Name))
}

// Words returns the values that are allowed, nil if they are no list of words.
func (k Key) Words() []string { return slices.Clone(k.oneof) }

// Flag returns the name of the flag without dashes: http-addr.
func (k Key) Flag() string { return strings.ReplaceAll(k.Name, ".", "-") }

// Keys returns all keys in the order of the definition. The result is shared:
// read it only.
var Keys = sync.OnceValue(func() []Key { return fieldKeys(reflect.TypeFor[Config](), "", "", nil) })

var durationType = reflect.TypeFor[time.Duration]()

func fieldKeys(t reflect.Type, prefix, title string, index []int) []Key {
	var keys []Key
	for f := range t.Fields() {
		path := append(slices.Clone(index), f.Index...)
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, fieldKeys(f.Type, prefix+f.Tag.Get("key")+".", f.Tag.Get("title"), path)...)
			continue
		}
		k := Key{
			Name:    prefix + f.Tag.Get("key"),
			Title:   cmp.Or(f.Tag.Get("title"), title),
			Help:    f.Tag.Get("help"),
			Default: f.Tag.Get("default"),
			Hint:    f.Tag.Get("hint"),
			Secret:  f.Tag.Get("secret") != "",
			Bool:    f.Type.Kind() == reflect.Bool,
			List:    f.Type.Kind() == reflect.Slice,
			Command: f.Tag.Get("command") != "",
			index:   path,
			typ:     f.Type,

			SecretFile: f.Tag.Get("secretfile") != "",

			secretPath: f.Tag.Get("secret") == "path",
			secretAll:  f.Tag.Get("secret") == "all",
			oneof:      strings.Fields(f.Tag.Get("oneof")),
		}
		if text := f.Tag.Get("min"); text != "" {
			k.min, k.max = k.mustNumber(text), k.mustNumber(f.Tag.Get("max"))
		}
		k.Limit, k.Hint = k.limitAndHint()
		keys = append(keys, k)
		if k.Secret {
			keys = append(keys, k.asFile())
		}
	}
	return keys
}

// asFile returns the key that names a file with the value of k. Every key that may hold a
// secret has one: other users of the machine see command lines in the list of processes.
func (k Key) asFile() Key {
	what := "the value of " + k.Name
	if k.List {
		what = "the values of " + k.Name + ", one per line"
	}
	return Key{
		Name: k.Name + fileSuffix, Title: k.Title, Hint: fileHint, typ: reflect.TypeFor[string](),
		Help: "File that holds " + what + ".", content: k.Name, SecretFile: true,
	}
}

const fileSuffix = "-file"

// fileHint is the Hint of every key that names a file which is read.
const fileHint = "FILE"

// mustNumber reads a tag of Config. It panics on a wrong tag. Every
// program and test that reads a key calls it, so a wrong tag cannot be released.
func (k Key) mustNumber(text string) int64 {
	v, err := k.parse(text)
	if err != nil {
		panic(fmt.Sprintf("app: tag of key %s: %v", k.Name, err))
	}
	return v.Int()
}

func (k Key) limitAndHint() (limit, hint string) {
	switch {
	case k.typ == durationType:
		return fmt.Sprintf("%s to %s", shortDuration(time.Duration(k.min)), shortDuration(time.Duration(k.max))), "TIME"
	case k.typ.Kind() == reflect.Int64:
		return fmt.Sprintf("%d to %d", k.min, k.max), "N"
	case k.Bool:
		return "true or false", "BOOL"
	case len(k.oneof) > 0:
		return "one of " + strings.Join(k.oneof, ", "), k.Hint
	}
	return "", k.Hint
}

// parse turns the text of one value into the type of the field (the element type
// of a list). It checks the form only; check compares with the limits.
func (k Key) parse(text string) (reflect.Value, error) {
	switch {
	case k.typ == durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return reflect.Value{}, k.wrong(text, "must be a duration such as 250ms, 5s or 1m, "+k.Limit)
		}
		return reflect.ValueOf(d), nil
	case k.typ.Kind() == reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return reflect.Value{}, k.wrong(text, "must be a whole number, "+k.Limit)
		}
		return reflect.ValueOf(n), nil
	case k.Bool:
		if text != "true" && text != "false" {
			return reflect.Value{}, k.wrong(text, "must be true or false")
		}
		return reflect.ValueOf(text == "true"), nil
	}
	if text == "" {
		return reflect.Value{}, k.wrong(text, "must not be empty; leave it out for the default")
	}
	return reflect.ValueOf(text), nil
}

// check compares a value of the field's type with the limits.
func (k Key) check(v reflect.Value) error {
	switch {
	case k.max != 0 && (v.Int() < k.min || v.Int() > k.max):
		return k.wrong(k.format(v), "must be "+k.Limit)
	case len(k.oneof) > 0 && !slices.Contains(k.oneof, v.String()):
		return k.wrong(v.String(), "must be "+k.Limit)
	}
	return nil
}

// format is the opposite of parse; the values of a list are joined as in an
// environment variable.
func (k Key) format(v reflect.Value) string {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return shortDuration(d)
	}
	if k.List {
		return strings.Join(v.Interface().([]string), ListSeparator)
	}
	return fmt.Sprint(v.Interface())
}

func (k Key) wrong(value, limit string) *Error {
	if k.Secret {
		value = k.Redact(value)
	}
	return &Error{Key: k.Name, Value: value, Limit: limit}
}

// shortDuration prints 1m0s as 1m and 1h0m0s as 1h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func keyByName(name string) (Key, bool) {
	for _, k := range Keys() {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}
