package zookeeper

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"

	"github.com/leaf-idgen/leaf"
)

// digits is the length of the number that ZooKeeper appends to a sequential node.
const digits = 10

// childName is the name below forever of an address with a number.
func childName(address string, number int64) string {
	return fmt.Sprintf("%s-%0*d", address, digits, number)
}

// parseChild is the reverse of childName. ok is false for a name that the Java
// server could not have made; it breaks Java, and means nothing to us.
func parseChild(name string) (address string, number int64, ok bool) {
	address, text, found := strings.Cut(name, "-")
	if !found || address == "" || len(text) != digits || strings.Trim(text, "0123456789") != "" {
		return "", 0, false
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return address, number, err == nil
}

// splitAddress returns the fields ip and port of the JSON for an address that can be
// part of a child's name. The ip of an IPv6 address keeps its brackets, since Java
// joins both with a colon.
func splitAddress(address string) (ip, port string, err error) {
	host, port, err := net.SplitHostPort(address)
	odd := func(r rune) bool { return r == '-' || r == '/' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if err != nil || host == "" || port == "" || strings.IndexFunc(address, odd) >= 0 {
		return "", "", leaf.BadField("address", address, "must be ip:port without a hyphen, since the Java server splits names there")
	}
	return strings.TrimSuffix(address, ":"+port), port, nil
}

// escape makes any text the name of a node: letters, digits and a few signs stand
// for themselves, every other byte is % and two hexadecimal digits.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_:[]", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// deleteAll says how to delete the node at p with its children. zkCli.sh takes a line apart at spaces and
// overlooks a second word, so it would delete another node than one with a space in its path.
func deleteAll(p string) string {
	switch {
	case !strings.ContainsFunc(p, unicode.IsSpace):
	case !strings.Contains(p, "'"):
		p = "'" + p + "'"
	case !strings.Contains(p, `"`):
		p = `"` + p + `"`
	default:
		return fmt.Sprintf("with a client that takes a path as it is, and not with zkCli.sh, delete %s and all that is below it", p)
	}
	return "in zkCli.sh, deleteall " + p
}

// parent is the path of the folder of p.
func parent(p string) string { return p[:strings.LastIndexByte(p, '/')] }
