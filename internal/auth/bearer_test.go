package auth_test

import (
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

func TestBearer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []string
		want   string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearer "}, ""},
		{[]string{"Bearer s3cret"}, "s3cret"},
		{[]string{"bearer s3cret"}, "s3cret"},
		{[]string{"BEARER   s3cret  "}, "s3cret"},
		{[]string{"Bearer open sesame"}, "open sesame"},
		{[]string{"Bearers s3cret"}, ""},
		{[]string{"Basic czNjcmV0"}, ""},
		{[]string{"s3cret"}, ""},
	} {
		if got, err := auth.Bearer(tt.values); got != tt.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", tt.values, got, err, tt.want)
		}
	}
	for _, twice := range [][]string{{"Bearer a", "Bearer a"}, {"Basic x", "Bearer a"}} {
		if _, err := auth.Bearer(twice); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%q: %v", twice, err)
		}
	}
}
