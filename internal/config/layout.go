package config

import (
	"strings"

	"github.com/leaf-idgen/leaf/snowflake"
)

// ParseLayout reads the key snowflake.layout.
func ParseLayout(text string) (snowflake.Layout, error) {
	l, err := snowflake.ParseLayout(text)
	if err != nil {
		return l, &Error{Key: "snowflake.layout", Value: text, Limit: strings.TrimPrefix(err.Error(), snowflake.ErrInvalid.Error()+": ")}
	}
	return l, nil
}
