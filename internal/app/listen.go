package app

import (
	"errors"
	"fmt"
	"net"

	"github.com/leaf-idgen/leaf/internal/config"
)

// listen binds the address of a server, nil if it is off.
func listen(key, addr string) (net.Listener, error) {
	if addr == config.AddrOff {
		return nil, nil //nolint:nilnil // a server that is off is a valid configuration
	}
	ln, err := net.Listen("tcp", addr) //nolint:noctx // binding does not wait
	if err != nil {
		flag, off := "--"+config.Key{Name: key}.Flag(), ""
		if key != "http.addr" {
			off = ", or " + flag + "=" + config.AddrOff
		}
		return nil, &config.Error{Key: key, Value: addr, Limit: fmt.Sprintf("%v; choose another %s%s", errors.Unwrap(err), flag, off)}
	}
	return ln, nil
}
