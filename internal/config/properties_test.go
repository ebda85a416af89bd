package config_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
)

// The expected values were written down from the documentation of
// java.util.Properties.load.
func TestProperties(t *testing.T) {
	t.Parallel()
	type kv = config.Property
	cases := []struct {
		name, text string
		want       []kv
	}{
		{"separators", "a=1\nb:2\nc 3\nd\t4\ne\f5\nf = 6\ng : 7\nh  8\ni = = 9\nj :: k", []kv{
			{"a", "1", 1},
			{"b", "2", 2},
			{"c", "3", 3},
			{"d", "4", 4},
			{"e", "5", 5},
			{"f", "6", 6},
			{"g", "7", 7},
			{"h", "8", 8},
			{"i", "= 9", 9},
			{"j", ": k", 10},
		}},
		{"comments and blank lines", "# a=1\n  ! b=2\n\n \t\f\nc=3 # not a comment", []kv{{"c", "3 # not a comment", 5}}},
		{"no value", "a\nb=\nc:  \n", []kv{{"a", "", 1}, {"b", "", 2}, {"c", "", 3}}},
		{"no key", "=1", []kv{{"", "1", 1}}},
		{"blanks around", "  \t a  =  b c \t", []kv{{"a", "b c \t", 1}}},
		{"continuation", "a=1,\\\n   2,\\\r\n\t3\nb=4", []kv{{"a", "1,2,3", 1}, {"b", "4", 4}}},
		{"continued comment mark", "a=1\\\n#2", []kv{{"a", "1#2", 1}}},
		{"a comment does not continue", "#a\\\nb=1", []kv{{"b", "1", 2}}},
		{"even number of backslashes", "a=c:\\\\\nb=1", []kv{{"a", `c:\`, 1}, {"b", "1", 2}}},
		{"three backslashes", "a=x\\\\\\\n y", []kv{{"a", `x\y`, 1}}},
		{"continuation at the end", "a=1\\", []kv{{"a", "1", 1}}},
		{"continued key", "ab\\\n  cd=1", []kv{{"abcd", "1", 1}}},
		{"escapes", `a\ b\=\:\#=\t\n\r\f\\\"\z`, []kv{{"a b=:#", "\t\n\r\f\\\"z", 1}}},
		{"unicode", `a=\u4e2d\u00E9`, []kv{{"a", "中é", 1}}},
		{"surrogate pair", `a=\ud83d\ude00!`, []kv{{"a", "😀!", 1}}},
		{"line ends", "a=1\rb=2\r\nc=3\n\rd=4", []kv{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 5}}},
		{"UTF-8", "a=中", []kv{{"a", "中", 1}}},
		{"ISO-8859-1", "a=caf\xe9", []kv{{"a", "café", 1}}},
		{"byte order mark", "\ufeffa=1", []kv{{"a", "1", 1}}},
		{"repeated key", "a=1\na=2", []kv{{"a", "1", 1}, {"a", "2", 2}}},
		{"empty", "", nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.ParseProperties([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBrokenEscapes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`a=\u12`, `a=\u12g4`, `a=\u+123`, `\u12=b`, `a=\ud83d`, `a=\ud83dx`, `a=\ud83d\u0041`, `a=\ude00`} {
		if got, err := config.ParseProperties([]byte("x=1\n" + text)); err == nil || !strings.Contains(err.Error(), "x.properties:2") {
			t.Errorf("%s: got %v, %v; want an error with the line", text, got, err)
		}
	}
}

func FuzzProperties(f *testing.F) {
	for _, seed := range []string{"a=1", "a\\\n b:c", "\\u4e2d=\\ud83d\\ude00", "#x\n!y\n\n", "a=\\", "\xe9=\xe9", "\\", "=", "a=b\\\\\\\r\n\\\r\nc"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := config.ParseProperties(data)
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("error %v is not leaf.ErrBadRequest", err)
			}
			return
		}
		last := 0
		var again strings.Builder
		for _, p := range got {
			if p.Line <= last {
				t.Errorf("line %d after line %d", p.Line, last)
			}
			last = p.Line
			if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
				t.Errorf("not UTF-8: %+q", []string{p.Key, p.Value})
			}
			again.WriteString(escape(p.Key) + "=" + escape(p.Value) + "\n")
		}
		// What was read, written in the most careful way, reads the same.
		second, err := config.ParseProperties([]byte(again.String()))
		if err != nil || len(second) != len(got) {
			t.Fatalf("second reading: %d of %d entries, %v", len(second), len(got), err)
		}
		for i := range got {
			if got[i].Key != second[i].Key || got[i].Value != second[i].Value {
				t.Errorf("entry %d: %+v, then %+v", i, got[i], second[i])
			}
		}
	})
}

// escape puts a backslash before everything that has a meaning.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '\t':
			b.WriteString(`\t`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\f':
			b.WriteString(`\f`)
		case ' ', '=', ':', '#', '!', '\\':
			b.WriteString(`\` + string(r))
		case '\ufeff':
			b.WriteString(`\ufeff`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func FuzzJDBC(f *testing.F) {
	for _, seed := range []string{
		"jdbc:mysql://127.0.0.1:3306/leaf?useUnicode=true&characterEncoding=utf8&useSSL=false",
		"jdbc:mariadb://h/d?sslMode=verify-full", "jdbc:postgresql:d", "jdbc:postgresql://[::1]:5432/d?ssl=true",
		"jdbc:mysql://u:p%40@h/d", "jdbc:mysql:replication://a,b/d", "jdbc:mysql://h:0/d", "jdbc:h2:mem", "mysql://h/d", "jdbc:mysql://h/%zz",
	} {
		f.Add(seed, "user", "p@ss:/?#")
	}
	f.Add("jdbc:postgresql", "0", "xxxxx")
	f.Fuzz(func(t *testing.T, jdbc, user, password string) {
		store, _, err := config.TranslateJDBC(jdbc, user, password)
		if err != nil {
			if len(password) > 3 && strings.Contains(err.Error(), password) && !strings.Contains(jdbc, password) {
				t.Errorf("the error shows the password: %v", err)
			}
			return
		}
		if !strings.HasPrefix(store, "mysql://") && !strings.HasPrefix(store, "postgres://") {
			t.Errorf("store %q", store)
		}
		// A password that is the mask itself cannot be told from it.
		if password != "" && password != "xxxxx" && user != "" && strings.Contains(config.Redact(store), ":"+password+"@") {
			t.Errorf("redacted store %q shows the password", config.Redact(store))
		}
	})
}
