package client

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

// checkTrust refuses options under which a directory could send the client, or its token,
// to a host that is no node. It sets the name that TLS checks where the resolver knows
// it.
func (o *options) checkTrust(nodes Resolver) error {
	for _, p := range o.hosts {
		if !isPattern(p) {
			return leaf.BadField("WithHosts", p, "must be a name, an address, *.DOMAIN or a CIDR")
		}
	}
	if o.plain {
		if (o.token != nil || o.fixedToken != "") && !o.plainToken {
			return leaf.BadField("WithToken", "without WithTLS", "would cross the network as plain text: add WithTLS, or WithPlainToken to allow it")
		}
		return nil
	}
	if o.tls.ServerName != "" || o.tls.InsecureSkipVerify || o.anyHost || len(o.hosts) > 0 {
		return nil
	}
	switch r := nodes.(type) {
	case fixed:
		return nil // the program itself names the hosts
	case byName:
		host, _, err := net.SplitHostPort(string(r))
		o.tls.ServerName = host
		return err
	}
	return leaf.BadField("WithTLS", "without ServerName", "lets the resolver name any host: set ServerName, add WithHosts, or WithAnyHost to allow it")
}

func isPattern(p string) bool {
	if strings.Contains(p, "/") {
		_, err := netip.ParsePrefix(p)
		return err == nil
	}
	name := strings.TrimPrefix(p, "*.")
	return name != "" && !strings.ContainsAny(name, "*: ") || isAddress(p)
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// checkHost says why the host of n is not one that the resolver may name.
func (o *options) checkHost(n discovery.Node) error {
	if len(o.hosts) == 0 {
		return nil
	}
	host, _, err := net.SplitHostPort(n.GRPC)
	if err != nil {
		return err
	}
	for _, p := range o.hosts {
		if hostMatches(p, host) {
			return nil
		}
	}
	return fmt.Errorf("%w: host %q is none of WithHosts: %s", leaf.ErrBadRequest, host, strings.Join(o.hosts, ", "))
}

func hostMatches(pattern, host string) bool {
	if prefix, err := netip.ParsePrefix(pattern); err == nil {
		address, err := netip.ParseAddr(host)
		return err == nil && prefix.Contains(address.Unmap())
	}
	if want, err := netip.ParseAddr(pattern); err == nil {
		address, err := netip.ParseAddr(host)
		return err == nil && address.Unmap() == want.Unmap()
	}
	pattern, host = strings.ToLower(pattern), strings.TrimSuffix(strings.ToLower(host), ".")
	if domain, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, domain) && len(host) > len(domain) && !isAddress(host)
	}
	return host == pattern
}
