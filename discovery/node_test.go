package discovery_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

// valid is a node with every field.
func valid() discovery.Node {
	return discovery.Node{ID: "n1", Zone: "eu-west", Weight: 100, HTTP: "10.0.0.1:8080", GRPC: "[2001:db8::1]:9090", RESP: "leaf.example.org:6380"}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*discovery.Node)
		want string // in the error; "": none
	}{
		{"every field", func(*discovery.Node) {}, ""},
		{"one address", func(n *discovery.Node) { n.HTTP, n.RESP, n.Zone, n.Weight = "", "", "", 0 }, ""},
		{"the longest names", func(n *discovery.Node) { n.ID, n.Zone = strings.Repeat("x", 64), strings.Repeat("机", 21) }, ""},
		{"the largest weight", func(n *discovery.Node) { n.Weight = 1000 }, ""},
		{"no ID", func(n *discovery.Node) { n.ID = "" }, `node id="": must have 1 to 64`},
		{"an ID of 65", func(n *discovery.Node) { n.ID = strings.Repeat("x", 65) }, "node id="},
		{"an ID with a slash", func(n *discovery.Node) { n.ID = "a/b" }, `node id="a/b"`},
		{"an ID that is a folder", func(n *discovery.Node) { n.ID = ".." }, `node id=".."`},
		{"an ID with a line feed", func(n *discovery.Node) { n.ID = "a\n" }, "node id="},
		{"a zone of 65", func(n *discovery.Node) { n.Zone = strings.Repeat("x", 65) }, "zone="},
		{"a zone with a line feed", func(n *discovery.Node) { n.Zone = "a\nb" }, "zone="},
		{"a zone of a space", func(n *discovery.Node) { n.Zone = " " }, "zone="},
		{"a zone that is no UTF-8", func(n *discovery.Node) { n.Zone = "\xff" }, "zone="},
		{"weight -1", func(n *discovery.Node) { n.Weight = -1 }, `weight="-1": must be 0 to 1000`},
		{"weight 1001", func(n *discovery.Node) { n.Weight = 1001 }, `weight="1001": must be 0 to 1000`},
		{"no address", func(n *discovery.Node) { n.HTTP, n.GRPC, n.RESP = "", "", "" }, "at least one protocol"},
		{"no port", func(n *discovery.Node) { n.HTTP = "10.0.0.1" }, `node http="10.0.0.1": must be HOST:PORT`},
		{"no host", func(n *discovery.Node) { n.GRPC = ":9090" }, `node grpc=":9090"`},
		{"port 0", func(n *discovery.Node) { n.RESP = "h:0" }, `node resp="h:0"`},
		{"port 65536", func(n *discovery.Node) { n.HTTP = "h:65536" }, "node http="},
		{"port 080", func(n *discovery.Node) { n.HTTP = "h:080" }, "node http="},
		{"a port by name", func(n *discovery.Node) { n.HTTP = "h:http" }, "node http="},
		{"all addresses", func(n *discovery.Node) { n.HTTP = "0.0.0.0:80" }, "node http="},
		{"all IPv6 addresses", func(n *discovery.Node) { n.HTTP = "[::]:80" }, "node http="},
		{"an address with an interface", func(n *discovery.Node) { n.HTTP = "[fe80::1%eth0]:80" }, "node http="},
		{"a URL", func(n *discovery.Node) { n.HTTP = "http://h:80" }, "node http="},
		{"a host of 254", func(n *discovery.Node) { n.HTTP = strings.Repeat("h", 254) + ":80" }, "node http="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := valid()
			tt.edit(&n)
			err := n.Validate()
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				got, err := discovery.Parse([]byte(n.Encode()))
				if err != nil || got != n {
					t.Errorf("Parse(%s) = %+v, %v; want %+v", n.Encode(), got, err, n)
				}
				return
			}
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate(%+v) = %v; want ErrBadRequest with %q", n, err, tt.want)
			}
			if got, err := discovery.Parse([]byte(n.Encode())); err == nil {
				t.Errorf("Parse(%s) = %+v", n.Encode(), got)
			}
		})
	}
}

func TestParse(t *testing.T) {
	good := valid().Encode()
	for _, tt := range []struct {
		name, text string
		ok         bool
	}{
		{"an entry", good, true},
		{"white space", " \n" + good + "\n", true},
		{"a field of a newer version", strings.Replace(good, "{", `{"load":{"now":[1,2]},`, 1), true},
		{"as long as it may be", good + strings.Repeat(" ", 4096-len(good)), true},
		{"longer", good + strings.Repeat(" ", 4097-len(good)), false},
		{"nothing", "", false},
		{"null", "null", false},
		{"a list", "[" + good + "]", false},
		{"two", good + good, false},
		{"cut off", good[:len(good)-1], false},
		{"a weight that is text", `{"id":"n","weight":"1","http":"h:1"}`, false},
		{"a weight that is no integer", `{"id":"n","weight":1.5,"http":"h:1"}`, false},
		{"a weight that overflows", `{"id":"n","weight":18446744073709551617,"http":"h:1"}`, false},
		{"no ID", `{"weight":1,"http":"h:1"}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := discovery.Parse([]byte(tt.text))
			if tt.ok && (err != nil || n != valid()) || !tt.ok && (err == nil || n != discovery.Node{}) {
				t.Errorf("Parse(%.100s) = %+v, %v; want ok %v", tt.text, n, err, tt.ok)
			}
		})
	}
}

// FuzzParse: what is read is valid, and is written in a way that reads the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid().Encode()))
	f.Add([]byte(`{"id":"n","http":"h:1","x":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := discovery.Parse(text)
		if err != nil {
			if n != (discovery.Node{}) {
				t.Errorf("%+v beside the error %v", n, err)
			}
			return
		}
		if err := n.Validate(); err != nil {
			t.Errorf("Parse returned %+v: %v", n, err)
		}
		again, err := discovery.Parse([]byte(n.Encode()))
		if err != nil || again != n {
			t.Errorf("%+v is written as %s and read as %+v, %v", n, n.Encode(), again, err)
		}
	})
}

// TestReader: garbage is named once, until it changes.
func TestReader(t *testing.T) {
	var log bytes.Buffer
	r := discovery.NewReader(slog.New(slog.NewTextHandler(&log, nil)))
	read := func(lines int, entries ...discovery.Entry) {
		t.Helper()
		log.Reset()
		n := valid()
		entries = append(entries, discovery.Entry{Place: "/leaf/n1", ID: "n1", Text: []byte(n.Encode())})
		if got := r.Nodes(entries); !slices.Equal(got, []discovery.Node{n}) {
			t.Errorf("Nodes = %+v", got)
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%d lines in the log, want %d:\n%s", got, lines, &log)
		}
	}
	garbage := discovery.Entry{Place: "/leaf/x", ID: "x", Text: []byte("garbage")}
	read(1, garbage)
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "place=/leaf/x") || !strings.Contains(log.String(), "text=garbage") {
		t.Errorf("log: %s", &log)
	}
	read(0, garbage)
	garbage.Text = []byte("other")
	read(1, garbage)
	read(1, discovery.Entry{Place: "/leaf/y", ID: "y", Text: []byte(valid().Encode())}) // of n1
	var flood []discovery.Entry
	for i := range 3000 {
		flood = append(flood, discovery.Entry{Place: fmt.Sprint(i), ID: "x", Text: bytes.Repeat([]byte{'x'}, 100_000)})
	}
	log.Reset()
	r.Nodes(flood)
	if log.Len() > 3000*1000 {
		t.Errorf("%d bytes in the log", log.Len())
	}
}
