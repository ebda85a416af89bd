package main

import (
	"fmt"
)

// protocol is a way to a node.
type protocol struct {
	name string
	flag string // of `leaf serve`, for its address
	// connect returns what makes lines to a node that listens at addr, and its end.
	connect func(addr string) (dial func() line, disconnect func(), err error)
}

// protocols are all there are, in the order of the report.
var protocols = []protocol{
	{"http", "--http-addr", connectHTTP},
	{"grpc", "--grpc-addr", connectGRPC},
	{"resp", "--resp-addr", connectRESP},
}

func names() (all []string) {
	for _, p := range protocols {
		all = append(all, p.name)
	}
	return all
}

func protocolNamed(name string) (protocol, error) {
	for _, p := range protocols {
		if p.name == name {
			return p, nil
		}
	}
	return protocol{}, fmt.Errorf("no protocol %q", name)
}
