package config

import (
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
)

// CheckStore returns why the driver does not accept the URL of a database, "" if it does.
func CheckStore(url string) string {
	store, err := sqldb.Open(url, sqldb.Config{})
	if err != nil {
		return strings.TrimPrefix(err.Error(), leaf.ErrBadRequest.Error()+": ")
	}
	if err := store.Close(); err != nil {
		return err.Error()
	}
	return ""
}
