package auth

import (
	"strings"

	"github.com/leaf-idgen/leaf"
)

// Bearer returns the token in the values of the field Authorization (RFC 6750): "" if the
// field is missing or has another scheme, which is meant for a proxy. The case of the
// scheme does not matter. Error: leaf.ErrBadRequest if the field is there twice, because
// a proxy before the node may have looked at the other one.
func Bearer(values []string) (token string, err error) {
	value, err := Single("Authorization", values)
	if err != nil {
		return "", err
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil
	}
	return strings.Trim(token, " "), nil
}

// Single returns the one value of a field, "" if the field is missing. Error:
// leaf.ErrBadRequest if the field is there twice.
func Single(field string, values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", leaf.BadField("header field", field, "must be given once")
}
