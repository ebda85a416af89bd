package accept

import (
	"net"
	"net/netip"
)

// Address returns where a connection comes from, zero if that is no IP address.
func Address(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// AddressIn is Address for the text HOST:PORT of package net/http.
func AddressIn(text string) netip.Addr {
	at, _ := netip.ParseAddrPort(text) // zero, if it is something else
	return at.Addr()
}
