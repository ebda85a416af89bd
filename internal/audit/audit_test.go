package audit_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf/internal/audit"
)

func TestID(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 12, 0, 0, 123456789, time.UTC)
	a, b, again := audit.NewID(at), audit.NewID(at.Add(time.Microsecond)), audit.NewID(at)
	if a >= b || a == again || a < audit.Lowest(at) || a >= audit.Lowest(at.Add(time.Microsecond)) {
		t.Errorf("IDs %q and %q", a, b)
	}
	if got, want := audit.TimeOf(a), at.Truncate(time.Microsecond); !got.Equal(want) {
		t.Errorf("time %v, want %v", got, want)
	}
	for _, wrong := range []string{"x", a[1:], a + "0", strings.Replace(a, "-", "0", 1), strings.Repeat("z", len(a))} {
		if err := (audit.Query{Limit: 1, Before: wrong}).Validate(); err == nil {
			t.Errorf("%q is taken for an ID", wrong)
		}
	}
}

// FuzzFit: every entry can be kept once it is made to fit.
func FuzzFit(f *testing.F) {
	f.Add("who", "tag \x00\xff")
	f.Add(strings.Repeat("😀", audit.MaxName+1), strings.Repeat("\n", audit.MaxValue+1))
	f.Fuzz(func(t *testing.T, name, value string) {
		e := audit.Entry{ID: audit.NewID(time.Now()), Node: name, Who: name, Address: name, Operation: name, Object: name, From: value, To: value, Result: value}.Fit()
		if err := e.Validate(); err != nil || e.Fit() != e {
			t.Errorf("%v, again %+v", err, e.Fit())
		}
		if utf8.RuneCountInString(value) > audit.MaxValue && !strings.HasSuffix(e.To, "…") {
			t.Errorf("a cut text does not say so: %q", e.To)
		}
	})
}
