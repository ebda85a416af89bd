package zookeeper_test

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/worker"
)

// FuzzChildName: a name that is parsed is the one that we would make, and Java can
// read it: it splits at hyphens and takes the second part for a number.
func FuzzChildName(f *testing.F) {
	for _, name := range []string{"10.0.0.1:8080-0000000007", "[::1]:8080-4294967295", "a-1", "-0000000001", "a-b-0000000001", "a-00000000٣1", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		address, number, ok := zookeeper.ParseChild(name)
		if !ok {
			return
		}
		if made := zookeeper.ChildName(address, number); made != name {
			t.Errorf("%q is parsed as %q and %d, which makes %q", name, address, number, made)
		}
		if number < 0 || address == "" || strings.Count(name, "-") != 1 {
			t.Errorf("%q is parsed as %q and %d", name, address, number)
		}
	})
}

// FuzzAddress: ip and port make the address again, and a child's name that is parsed
// gives it back.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{"10.0.0.1:8080", "[::1]:8080", "[fe80::1%eth0]:1", "host:http", "a-b:1", ":1", "a:", "a/b:1"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		ip, port, err := zookeeper.SplitAddress(address)
		if err != nil {
			return
		}
		if ip+":"+port != address || ip == "" || port == "" {
			t.Errorf("%q is split into %q and %q", address, ip, port)
		}
		if got, number, ok := zookeeper.ParseChild(zookeeper.ChildName(address, 42)); !ok || got != address || number != 42 {
			t.Errorf("the child of %q is parsed as %q, %d, %v", address, got, number, ok)
		}
	})
}

// FuzzTimestamp: what Java wrote is read, and anything else is refused, never a panic
// or a negative moment.
func FuzzTimestamp(f *testing.F) {
	for _, data := range []string{
		`{"ip":"10.0.0.1","port":"8080","timestamp":1763000000000}`, `{"timestamp":1,"more":2}`, `{"timestamp":"1"}`,
		`{"timestamp":-1}`, `{"timestamp":1e3}`, `{"timestamp":9223372036854775807}`, `{}`, `null`, `[]`, "\xff", "",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ts, err := zookeeper.ParseTimestamp("/path", data)
		switch {
		case err == nil && (ts < 0 || ts+10_000 < ts):
			t.Errorf("%q is read as %d", data, ts)
		case err != nil && (!errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "/path")):
			t.Errorf("%q: %v; want ErrForeign with the path", data, err)
		}
	})
}

// FuzzEscape: no two texts have one name, and ZooKeeper accepts each.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"order", "a/b", ".", "..", "%2F", "\x00\x7f\ufeff", "订单", "zookeeper"} {
		f.Add(text)
	}
	legal := regexp.MustCompile(`^[-_:a-zA-Z0-9%\[\]]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		name := zookeeper.Escape(text)
		if !legal.MatchString(name) {
			t.Errorf("%q becomes %q", text, name)
		}
		if back, err := url.PathUnescape(name); err != nil || back != text {
			t.Errorf("%q becomes %q, and that %q, %v", text, name, back, err)
		}
	})
}

// FuzzVersion: what is accepted says what was written.
func FuzzVersion(f *testing.F) {
	for _, text := range []string{"", "1.2.3", "-1.0.nonce", "0.0.", "01.2.3", "1.2.3x", "1.2", "99999999999.1.a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if again, ok := zookeeper.ParseVersions(text); ok && again != text {
			t.Errorf("version %q is read as %q", text, again)
		}
		if again, err := zookeeper.ParsePool(text); err == nil && text != "" {
			if once, err := zookeeper.ParsePool(again); err != nil || once != again {
				t.Errorf("version %q is read as %q and then %q, %v", text, again, once, err)
			}
		}
	})
}
