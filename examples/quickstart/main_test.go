package main

import (
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/leaftest"
)

func TestOrders(t *testing.T) {
	s := leaftest.New(t, "leaf-segment-test")
	c := s.Client()
	if text, err := orders(t.Context(), c); err != nil || text != "one is 1, 500 more are [[2, 502)]" {
		t.Errorf("orders = %q, %v", text, err)
	}

	s.Fail(leaf.ErrBlocked) // what does the program do now?
	if text, err := orders(t.Context(), c); !errors.Is(err, leaf.ErrBlocked) {
		t.Errorf("orders = %q, %v", text, err)
	}
}
