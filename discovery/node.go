package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// Node is what a node tells its clients. Addresses are HOST:PORT as clients reach
// them, "" where the protocol is off; at least one is on.
type Node struct {
	ID     string `json:"id"`             // of the node's data directory: the same after a restart
	Zone   string `json:"zone,omitempty"` // datacentre or the like; "" if there is but one
	Weight int    `json:"weight"`         // share of the traffic relative to other nodes, 0 to MaxWeight; 0: only if no other node answers
	HTTP   string `json:"http,omitempty"`
	GRPC   string `json:"grpc,omitempty"`
	RESP   string `json:"resp,omitempty"`

	// Cluster is the ID of the node's cluster, "" while the node has not read it, and in a
	// cluster without a database. Two nodes of one cluster never have different ones.
	Cluster string `json:"cluster,omitempty"`

	Version string `json:"version,omitempty"` // of the program, for people; up to MaxNameLen printable bytes
}

// Limits and default of a Node.
const (
	MaxWeight     = 1000
	DefaultWeight = 100
	MaxNameLen    = 64 // of ID and zone, in bytes
)

// Validate returns leaf.ErrBadRequest, naming the field, if n is outside its limits.
func (n Node) Validate() error {
	if err := CheckID(n.ID); err != nil {
		return err
	}
	if err := CheckZone(n.Zone); err != nil {
		return err
	}
	if err := CheckWeight(n.Weight); err != nil {
		return err
	}
	if n.Cluster != "" && CheckID(n.Cluster) != nil {
		return leaf.BadField("node cluster", n.Cluster, "must be as the ID of a node, or empty")
	}
	if !isName(n.Version) {
		return leaf.BadField("node version", n.Version, fmt.Sprintf("must have up to %d bytes of printable characters", MaxNameLen))
	}
	for _, a := range n.Addresses() {
		if a.Value != "" && !isAddress(a.Value) {
			return leaf.BadField("node "+a.Protocol, a.Value, "must be HOST:PORT, with a port from 1 to 65535")
		}
	}
	if !slices.ContainsFunc(n.Addresses(), func(a Address) bool { return a.Value != "" }) {
		return leaf.BadField("node address", "", "at least one protocol must have one")
	}
	return nil
}

// Address is where a node serves one protocol.
type Address struct {
	Protocol string // its field in JSON
	Value    string // "" where the protocol is off
}

// Addresses returns those of all protocols.
func (n Node) Addresses() []Address {
	return []Address{{"http", n.HTTP}, {"grpc", n.GRPC}, {"resp", n.RESP}}
}

// nodeID has no character that any registry gives a meaning to.
var nodeID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// CheckID returns leaf.ErrBadRequest if id cannot be that of a node.
func CheckID(id string) error {
	if len(id) > MaxNameLen || !nodeID.MatchString(id) {
		return leaf.BadField("node id", id, fmt.Sprintf("must have 1 to %d letters, digits, hyphens, dots or underscores, and not begin with a hyphen or a dot", MaxNameLen))
	}
	return nil
}

// CheckZone returns leaf.ErrBadRequest if zone cannot be that of a node.
func CheckZone(zone string) error {
	if !isName(zone) {
		return leaf.BadField("zone", zone, fmt.Sprintf("must have up to %d bytes of printable characters, without a space at either end", MaxNameLen))
	}
	return nil
}

// isName reports whether people can read the text, and see where it ends.
func isName(text string) bool {
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	return len(text) <= MaxNameLen && !strings.ContainsFunc(text, odd) && strings.TrimSpace(text) == text
}

// CheckWeight returns leaf.ErrBadRequest if weight cannot be that of a node.
func CheckWeight(weight int) error {
	if weight < 0 || weight > MaxWeight {
		return leaf.BadField("weight", weight, fmt.Sprintf("must be 0 to %d", MaxWeight))
	}
	return nil
}

// hostName is what a resolver may take; it decides what it means.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})$`)

func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == "" && !ip.IsUnspecified()
	}
	return hostName.MatchString(host)
}
