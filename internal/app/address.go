package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"
)

// Interface is a network interface, as far as the choice of an address needs it.
type Interface struct {
	Name     string
	Up       bool
	Loopback bool
	Addrs    []netip.Addr
}

// systemInterfaces returns those of this machine, in the order of the system.
func systemInterfaces() ([]Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	out := make([]Interface, 0, len(list))
	for _, i := range list {
		n := Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0}
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface is gone since it was listed
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				n.Addrs = append(n.Addrs, prefix.Addr().Unmap())
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// advertised returns the identity of a node, "ip:port": what is configured, and for
// the rest a detected IP and the port of the HTTP server. In a shared registry an
// address that other machines cannot tell from their own is refused, unless
// force-address allows it; elsewhere nothing is detected and any address will do.
func advertised(c config.Snowflake, shared bool, httpPort uint16, interfaces func() ([]Interface, error)) (string, error) {
	ip, port, err := config.ParseAddress(c.Address)
	if err != nil {
		return "", err
	}
	if port == 0 {
		port = httpPort
	}
	strict := shared && !c.Force
	if ip.IsValid() && !strict {
		return netip.AddrPortFrom(ip, port).String(), nil
	}
	if !ip.IsValid() && !shared && len(c.WorkerMap) == 0 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String(), nil
	}
	list, err := interfaces()
	if err != nil {
		return "", err
	}
	if !ip.IsValid() {
		if ip, err = detect(c, list); err != nil {
			return "", err
		}
	} else if why := ambiguous(ip, interfaceWith(ip, list)); why != "" {
		return "", &config.Error{Key: "snowflake.address", Value: c.Address, Limit: why + ", which other machines cannot tell from their own; name another one, or set snowflake.force-address"}
	}
	return netip.AddrPortFrom(ip, port).String(), nil
}

// detect chooses an address: of the preferred interfaces in their order, else of any
// that is up; IPv4 before IPv6.
func detect(c config.Snowflake, list []Interface) (netip.Addr, error) {
	patterns := c.Interfaces
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	for _, pattern := range patterns {
		var candidates []netip.Addr
		for _, i := range list {
			if ok, _ := path.Match(pattern, i.Name); !ok || !i.Up {
				continue
			}
			for _, ip := range i.Addrs {
				if c.Force && len(c.Interfaces) > 0 || ambiguous(ip, i.Name) == "" {
					candidates = append(candidates, ip)
				}
			}
		}
		slices.SortStableFunc(candidates, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
		if len(candidates) > 0 {
			return candidates[0], nil
		}
	}
	e := &config.Error{Key: "snowflake.address", Limit: "no address that other machines can reach was found among " + describe(list) + "; set it to this node's IP:PORT"}
	if len(c.Interfaces) > 0 {
		e.Key, e.Value = "snowflake.interface", strings.Join(c.Interfaces, config.ListSeparator)
	}
	return netip.Addr{}, e
}

// isUndetected reports whether err is that of detect, without anything configured that
// it did not find.
func isUndetected(err error) bool {
	ce, ok := errors.AsType[*config.Error](err)
	return ok && ce.Key == "snowflake.address" && ce.Value == ""
}

// bridges are the interfaces that container engines make; each host has its own with
// the same addresses.
var bridges = []string{"docker*", "br-*", "veth*", "virbr*", "cni*", "podman*"}

// ambiguous says in a few words why two machines may have the address, "" if none
// should.
func ambiguous(ip netip.Addr, on string) string {
	switch {
	case ip.IsLoopback():
		return "is a loopback address"
	case ip.IsUnspecified():
		return "stands for all addresses"
	case ip.IsLinkLocalUnicast():
		return "is link-local"
	case ip.IsMulticast():
		return "is a multicast address"
	}
	for _, pattern := range bridges {
		if ok, _ := path.Match(pattern, on); ok {
			return "belongs to " + on + ", a bridge for containers"
		}
	}
	return ""
}

// interfaceWith returns the name of the interface with the address, "" if there is none, as
// behind address translation.
func interfaceWith(ip netip.Addr, list []Interface) string {
	for _, i := range list {
		if slices.Contains(i.Addrs, ip) {
			return i.Name
		}
	}
	return ""
}

func describe(list []Interface) string {
	if len(list) == 0 {
		return "no interfaces"
	}
	names := make([]string, len(list))
	for n, i := range list {
		var addrs []string
		for _, ip := range i.Addrs {
			addrs = append(addrs, ip.String())
		}
		names[n] = fmt.Sprintf("%s (%s)", i.Name, strings.Join(addrs, ", "))
		if !i.Up {
			names[n] = i.Name + " (down)"
		}
	}
	return strings.Join(names, ", ")
}
