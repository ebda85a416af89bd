package config

import (
	"net"
	"net/netip"
	"strconv"
)

// ParseAddress reads IP, IP:PORT, :PORT or nothing. What is missing is invalid, or 0.
func ParseAddress(text string) (ip netip.Addr, port uint16, err error) {
	if text == "" {
		return ip, 0, nil
	}
	wrong := &Error{Key: "snowflake.address", Value: text, Limit: "must be IP:PORT, IP or :PORT, with a port from 1 to 65535; an IPv6 address with a port stands in brackets: [2001:db8::1]:8080"}
	if ip, err := netip.ParseAddr(text); err == nil {
		if ip.Zone() != "" {
			return ip, 0, wrong
		}
		return ip.Unmap(), 0, nil
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return ip, 0, wrong
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != number {
		return ip, 0, wrong
	}
	if host == "" {
		return ip, uint16(n), nil
	}
	if ip, err = netip.ParseAddr(host); err != nil || ip.Zone() != "" {
		return ip, 0, wrong
	}
	return ip.Unmap(), uint16(n), nil
}
