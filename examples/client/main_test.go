package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/client/leaftest"
)

func TestRun(t *testing.T) {
	t.Parallel()
	s := leaftest.New(t, "order")
	var out bytes.Buffer
	if err := run(t.Context(), &out, s.Addr(), "order"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one ID: 1\n", "a thousand: [[2, 1002)]\n", "one of snowflake mode: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}
