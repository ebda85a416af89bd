package etcd_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/worker"
)

// FuzzValues: what is read of our keys, written again, says the same; what is not one
// of our objects is refused with its key.
func FuzzValues(f *testing.F) {
	for i, value := range []string{
		`{"name":"prod","fingerprint":"f","issue_from":5}`,
		`{"address":"10.0.0.1:8080","nonce":"n","floor":1,"released":false}`,
		`{"address":"10.0.0.1:8080","clock":"10.0.0.1:80","nonce":"n","number":7}`,
	} {
		f.Add(uint8(i), []byte(value))
		f.Add(uint8(i), []byte(strings.Replace(value, "{", `{"more":1,`, 1)))
		f.Add(uint8(i), []byte(value+" {}"))
		f.Add(uint8(i), []byte(" null "))
		f.Add(uint8(i), []byte("\xff"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, value []byte) {
		name := etcd.Values[int(kind)%len(etcd.Values)]
		once, err := etcd.Rewrite(name, "/key", value)
		if err != nil {
			if !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "/key") || len(err.Error()) > 2000 {
				t.Errorf("%s %q: %v; want a short ErrForeign with the key", name, value, err)
			}
			return
		}
		if twice, err := etcd.Rewrite(name, "/key", []byte(once)); err != nil || twice != once {
			t.Errorf("%s %q becomes %q and then %q, %v", name, value, once, twice, err)
		}
		var object map[string]any
		if err := json.Unmarshal(value, &object); err != nil || object == nil {
			t.Errorf("%s %q is read although it is no object", name, value)
		}
	})
}

// FuzzBound: T has one text only, and room for sums.
func FuzzBound(f *testing.F) {
	for _, text := range []string{"1763000000000", "0", "-1", "+5", "007", "1e3", "9223372036854775807", "9223372036854775808", " 1", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		bound, err := etcd.DecodeBound("/key", value)
		switch {
		case err == nil && (bound < 0 || bound > math.MaxInt64/4 || strconv.FormatInt(bound, 10) != string(value)):
			t.Errorf("%q is read as %d", value, bound)
		case err != nil && (!errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "/key")):
			t.Errorf("%q: %v; want ErrForeign with the key", value, err)
		}
	})
}

// FuzzNumber: one number has one key.
func FuzzNumber(f *testing.F) {
	for _, key := range []string{"7", "07", "-7", "7/8", "", "9223372036854775807", "٧"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, name string) {
		const prefix = "/leaf/claims/"
		n, err := etcd.DecodeNumber(prefix+name, prefix)
		switch {
		case err == nil && (n < 0 || strconv.FormatInt(n, 10) != name):
			t.Errorf("%q is read as %d", name, n)
		case err != nil && !errors.Is(err, worker.ErrForeign):
			t.Errorf("%q: %v; want ErrForeign", name, err)
		}
	})
}

// FuzzVersion: a version is exactly what was read, or nothing.
func FuzzVersion(f *testing.F) {
	for _, text := range []string{"", `7/8 {"nonce":"a b"}`, "0/8 ", "0/0 x", "7/8", "-1/2 ", "7/8/9 x", "1/ x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if again, err := etcd.ParseVersion(text); err == nil && again != text {
			t.Errorf("%q is read as %q", text, again)
		}
	})
}

// FuzzRow: a row that is read is written with the same numbers, and with all fields that it had.
func FuzzRow(f *testing.F) {
	const good = `{"max_id":"9007199254740993","step":7,"update_time":"2026-11-26T20:00:00Z","fixed_step":true}`
	for _, text := range []string{
		good, `{"max_id":"5","step":7,"later":{"b":[1,2]}}`, `{"max_id":5,"step":7}`, `{"MAX_ID":"5","step":7}`, `{"max_id":"5","step":null}`, "{}", "null", good + good,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, again, err := etcd.RewriteRow(text)
		if err != nil {
			if !errors.Is(err, leaf.ErrInvalidRow) || !strings.Contains(err.Error(), "/rows/order") {
				t.Errorf("%q: %v; want ErrInvalidRow with the key", text, err)
			}
			return
		}
		twice, last, err := etcd.RewriteRow(again)
		if err != nil || last != again || twice.MaxID != row.MaxID || twice.Step != row.Step || twice.Options != row.Options || !twice.UpdateTime.Equal(row.UpdateTime) {
			t.Errorf("%q is %+v, becomes %q and is %+v, %v", text, row, again, twice, err)
		}
	})
}
