package chaos

import (
	"errors"
	"strings"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
)

// ways are the proxies through which one node reaches the servers of one kind, one
// for each server.
type ways []*proxy.Proxy

// through makes a way to each of the addresses.
func through(addrs ...string) (ways, error) {
	var w ways
	for _, a := range addrs {
		p, err := proxy.Start(a)
		if err != nil {
			w.close()
			return nil, err
		}
		w = append(w, p)
	}
	return w, nil
}

// addrs returns where the node connects to.
func (w ways) addrs() []string {
	var all []string
	for _, p := range w {
		all = append(all, p.Addr())
	}
	return all
}

// each does the same to every way.
func (w ways) each(do func(*proxy.Proxy)) {
	for _, p := range w {
		do(p)
	}
}

// open ends whatever was done to the ways. What lost bytes is cut: nothing that
// comes later on such a connection would be understood.
func (w ways) open() error {
	var errs []error
	for _, p := range w {
		p.SetHook(nil)
		p.Delay(0)
		p.Jitter(0)
		p.CutAtRandom(0)
		p.Swallow()
		p.Cut()
		p.Hold()
		errs = append(errs, p.Accept())
	}
	return errors.Join(errs...)
}

func (w ways) close() { w.each((*proxy.Proxy).Close) }

// list joins addresses as the program's flags want them.
func list(addrs []string) string { return strings.Join(addrs, ",") }
