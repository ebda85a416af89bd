package accept

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback reports whether HOST or HOST:PORT is this machine's loopback.
func IsLoopback(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}
