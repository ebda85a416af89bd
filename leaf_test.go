package leaf_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
)

func TestAppendRange(t *testing.T) {
	for _, c := range []struct {
		name string
		add  []leaf.Range
		want string
	}{
		{"nothing", nil, "[]"},
		{"empty and inverted are dropped", []leaf.Range{{Lo: 5, Hi: 5}, {Lo: 9, Hi: 3}}, "[]"},
		{"adjacent merge", []leaf.Range{{Lo: 1, Hi: 5}, {Lo: 5, Hi: 7}}, "[[1, 7)]"},
		{"a gap stays", []leaf.Range{{Lo: 1, Hi: 5}, {Lo: 6, Hi: 7}, {Lo: 7, Hi: 9}}, "[[1, 5) [6, 9)]"},
	} {
		var got []leaf.Range
		for _, r := range c.add {
			got = leaf.AppendRange(got, r)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestValidateTag(t *testing.T) {
	for name, c := range map[string]struct {
		tag  string
		text string // what the error must say; empty: valid
	}{
		"plain":                     {"order", ""},
		"dots and slashes":          {"a.b/c d", ""},
		"quotes":                    {`'";--\%_`, ""},
		"line break":                {"a\nb", ""},
		"128 characters":            {strings.Repeat("x", 128), ""},
		"128 characters, 512 bytes": {strings.Repeat("😀", 128), ""},
		"empty":                     {"", "1 to 128"},
		"129 characters":            {strings.Repeat("x", 129), "has 129 characters"},
		"129 wide characters":       {strings.Repeat("订", 129), "has 129 characters"},
		"bad UTF-8":                 {"a\xff", "valid UTF-8"},
		"zero byte":                 {"a\x00b", "U+0000"},
	} {
		err := leaf.ValidateTag(c.tag)
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.text != "" && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: error %v, want a bad request with %q", name, err, c.text)
		}
	}
}

// TestEverySentinelHasAClass reads errors.go, so that a new sentinel without a row
// in the table fails here.
func TestEverySentinelHasAClass(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
			declared++
		}
		return true
	})
	classes := leaf.Classes()
	if got := len(classes) - 1; got != declared { // one row is for everything else
		t.Errorf("errors.go declares %d sentinels, and the table in class.go has %d: each needs its row", declared, got)
	}
	codes, texts := map[string]bool{}, map[string]bool{}
	for _, c := range classes {
		if codes[c.Code] || c.Code == "" || c.Title == "" || c.RESP == "" || texts[c.Title] {
			t.Errorf("class %+v is incomplete or not distinct", c)
		}
		codes[c.Code], texts[c.Title] = true, true
		if c.HTTP < 400 || c.GRPC == 0 {
			t.Errorf("class %+v answers success", c)
		}
		if back, ok := leaf.ClassByCode(c.Code); !ok || back.Code != c.Code {
			t.Errorf("code %q is not found again", c.Code)
		}
		if c.Err != nil {
			if got := leaf.ClassOf(fmt.Errorf("step %q: %w", "x", c.Err)); got.Code != c.Code {
				t.Errorf("%v has class %q, want %q", c.Err, got.Code, c.Code)
			}
		}
	}
	if got := leaf.ClassOf(errors.New("anything")); got.Code != "internal" || got.HTTP != 500 {
		t.Errorf("an unknown error has class %+v", got)
	}
	if _, ok := leaf.ClassByCode("nonsense"); ok {
		t.Error("an unknown code was found")
	}
}

func TestDisabledNeverIssues(t *testing.T) {
	d := leaf.Disabled("snowflake")
	_, err := d.Next(t.Context(), "x")
	_, errN := d.NextN(t.Context(), "x", 3)
	for _, err := range []error{err, errN} {
		if !errors.Is(err, leaf.ErrDisabled) || !strings.Contains(err.Error(), "snowflake") {
			t.Errorf("error %v, want ErrDisabled that names the mode", err)
		}
	}
}

func TestBadFieldShortensLongValues(t *testing.T) {
	err := leaf.BadField("tag", strings.Repeat("x", 10_000), "must be short")
	if len(err.Error()) > 200 {
		t.Errorf("text has %d bytes", len(err.Error()))
	}
}

func TestSystemRuntimeWait(t *testing.T) {
	rt := leaf.SystemRuntime()
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		close(closed)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := rt.Wait(done, closed, 0); err != nil {
			t.Errorf("wake and ctx both ready: %v, want wake to win", err)
		}
		if err := rt.Wait(done, nil, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("ctx done: %v", err)
		}
		start := time.Now()
		if err := rt.Wait(t.Context(), nil, time.Second); err != nil || time.Since(start) != time.Second {
			t.Errorf("elapsed: %v after %v", err, time.Since(start))
		}
		ctx, cancel2 := rt.WithTimeout(t.Context(), time.Minute)
		defer cancel2()
		if err := rt.Wait(ctx, nil, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
	})
}

func TestJitter(t *testing.T) {
	rt := leaf.SystemRuntime()
	for _, d := range []time.Duration{0, 1, 2, 3, time.Second} {
		for range 100 {
			if got := rt.Jitter(d); got < d/2 || got > d {
				t.Fatalf("Jitter(%d) = %d", d, got)
			}
		}
	}
}

// TestAdmitTellsOfTheWait: a server hears that a request is about to wait before the request may take a place among those
// that do.
func TestAdmitTellsOfTheWait(t *testing.T) {
	var told []string
	a := admits(func() error { told = append(told, "asked"); return leaf.ErrExhausted })
	ctx := context.WithValue(t.Context(), leaf.AdmissionKey{}, a)
	ctx = context.WithValue(ctx, leaf.WaitKey{}, func() { told = append(told, "heard") })
	if err := leaf.Admit(ctx); !errors.Is(err, leaf.ErrExhausted) || strings.Join(told, " ") != "heard asked" {
		t.Errorf("%q, %v", told, err)
	}
}

type admits func() error

func (a admits) Admit() error { return a() }
