package etcd

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// The parsers, for their tests.
var (
	DecodeBound  = decodeBound
	DecodeNumber = decodeNumber
	ParseVersion = func(text string) (string, error) { v, err := parseVersion(text); return v.String(), err }
)

// Values are the kinds of values that our keys hold.
var Values = []string{"namespace", "claim", "peer"}

// Rewrite reads a value of this kind and returns it as we would write it.
func Rewrite(kind, key string, value []byte) (string, error) {
	into := map[string]interface{ format() int }{"namespace": new(namespaceValue), "claim": new(claimValue), "peer": new(peerValue)}[kind]
	if err := decode(key, value, into); err != nil {
		return "", err
	}
	return encode(into), nil
}

// Explain returns the error of a call whose client has returned err.
func Explain(err error) error { return new(conn).explain(err, time.Now()) }

// Panic connects in such a way that the log-in panics, and returns what the call hears that waits
// for the connection.
func Panic(ctx context.Context) error {
	withoutContext := &conn{cfg: Config{Endpoints: []string{"127.0.0.1:1"}, Username: "u", Password: "p", DialTimeout: time.Second}}
	_, err := withoutContext.get(ctx)
	return err
}

// SeeClusters returns a function that takes the cluster of an answer, and returns what the call hears.
func SeeClusters() func(id uint64, now time.Time) error {
	c := new(clusters)
	return func(id uint64, now time.Time) error {
		c.saw(id, now)
		return c.check(now)
	}
}

// RewriteRow reads a row, and returns it with its text as a load would write it.
func RewriteRow(text string) (row segment.Row, again string, err error) {
	row, err = parseRow("order", "/rows/order", []byte(text))
	if err != nil {
		return row, "", err
	}
	return row, rowText(text, row), nil
}
