package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
)

// validate returns everything that is wrong beyond the limits of single keys.
func (c Snowflake) validate() []error {
	var errs []error
	fail := func(key, value, limit string) {
		errs = append(errs, &Error{Key: "snowflake." + key, Value: value, Limit: limit})
	}
	layout, err := ParseLayout(c.Layout)
	if err != nil {
		return append(errs, err) // the limits below depend on it
	}
	switch most := int64(1)<<layout.DatacenterBits - 1; {
	case c.Datacenter > most && most == 0:
		fail("datacenter", strconv.FormatInt(c.Datacenter, 10), fmt.Sprintf("must not be set: the layout %s has no such field", c.Layout))
	case c.Datacenter > most, c.Enable && most > 0 && c.Datacenter < 0:
		fail("datacenter", strconv.FormatInt(c.Datacenter, 10), fmt.Sprintf("must be 0 to %d in the layout %s, another one in each datacentre", most, c.Layout))
	}
	workers, err := c.Workers()
	if err != nil {
		return append(errs, err)
	}
	if _, err := WorkerRange(c.WorkerRange, workers); err != nil {
		errs = append(errs, err)
	}
	if _, _, err := ParseAddress(c.Address); err != nil {
		errs = append(errs, err)
	}
	for _, pattern := range c.Interfaces {
		if _, err := path.Match(pattern, ""); err != nil {
			fail("interface", pattern, "must be a name, or a pattern such as en*")
		}
	}
	if !isPathName(c.Name) {
		fail("name", c.Name, "must have "+pathNameForm)
	}
	if !label.MatchString(c.Namespace) {
		fail("namespace", c.Namespace, "must have 1 to 64 of letters, digits, '.', '_' and '-'")
	}
	errs = append(errs, c.timings()...)
	if c.Enable {
		errs = append(errs, c.numbering(workers)...)
		errs = append(errs, c.addresses()...)
	}
	return errs
}

// Given returns the keys that give a static node its number.
func (c Snowflake) Given() (keys []string) {
	if c.WorkerID != "" {
		keys = append(keys, "worker-id")
	}
	if len(c.WorkerMap) > 0 {
		keys = append(keys, "worker-map")
	}
	if c.FromHostname {
		keys = append(keys, "worker-from-hostname")
	}
	return keys
}

// identity checks that the node will have the same identity after a restart.
func (c Snowflake) identity(httpAddr string) error {
	switch _, port, _ := net.SplitHostPort(httpAddr); {
	case c.Registry == RegistryStatic && len(c.Given()) == 0:
		return &Error{Key: "snowflake.registry", Value: c.Registry, Limit: "needs one of snowflake.worker-id, snowflake.worker-map and snowflake.worker-from-hostname"}
	case c.Registry == RegistryZooKeeper && port == "0" && !strings.Contains(c.Address, ":"):
		return &Error{Key: "snowflake.address", Value: c.Address, Limit: "must name a port, because that of http.addr is another one after each start, and with zookeeper ip:port is the identity"}
	}
	return nil
}

// Unstable says what a node should know that uses up a number of zookeeper with each new
// address, "" if there is nothing: newDir says that its data directory never had a number.
func (c Snowflake) Unstable(newDir bool) string {
	if c.Registry != RegistryZooKeeper || c.Address != "" || !newDir {
		return ""
	}
	return "with snowflake.registry=zookeeper the address is the identity, and a number is never used again. If the address of this node changes with each start, as that of a pod does, numbers run out: give it one that stays (snowflake.address). Another registry gives the worker IDs of Java servers and of the nodes that have this one: docs/SNOWFLAKE.md#operating says how all of them leave it together"
}

// orLater follows the longest horizon, where nodes that had their worker IDs from another place start after it.
const orLater = ", or later after a clock was ahead (docs/SNOWFLAKE.md#operating)"

// pathNameForm is what isPathName asks for.
const pathNameForm = "1 to 64 printable characters without slash"

// isPathName reports whether a name can be one part of a path in the registry. It is no regular
// expression: to compile one with 64 printable characters took a sixth of the time in which leaf starts.
func isPathName(name string) bool {
	notPrintable := func(r rune) bool { return r == '/' || unicode.Is(unicode.C, r) }
	n := utf8.RuneCountInString(name)
	return n >= 1 && n <= 64 && name != "." && name != ".." && !strings.ContainsFunc(name, notPrintable)
}

var label = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// timings checks what must fit together. The engine has the same limits; here they
// are told by the names of the keys.
func (c Snowflake) timings() []error {
	var errs []error
	const ahead = 3 * time.Second // of the bound in the node's own file
	if least := max(3*c.Renew, ahead); c.Horizon != 0 && c.Horizon < least {
		errs = append(errs, &Error{
			Key: "snowflake.horizon", Value: shortDuration(c.Horizon),
			Limit: fmt.Sprintf("must be 0, or at least %s, three times snowflake.renew-interval", shortDuration(least)),
		})
	}
	if c.Lease < 3*c.Renew {
		errs = append(errs, &Error{
			Key: "snowflake.lease", Value: shortDuration(c.Lease),
			Limit: fmt.Sprintf("must be at least %s, three times snowflake.renew-interval", shortDuration(3*c.Renew)),
		})
	}
	if c.Enable && c.Registry == RegistryEtcd {
		errs = append(errs, c.etcdLease()...)
	}
	return errs
}

// numbering checks how a static node gets its number, and that no other one does.
func (c Snowflake) numbering(workers Workers) []error {
	var errs []error
	fail := func(key, value, limit string) {
		errs = append(errs, &Error{Key: "snowflake." + key, Value: value, Limit: limit})
	}
	if c.WorkerID != "" {
		if _, err := WorkerNumber("snowflake.worker-id", c.WorkerID, c.WorkerID, workers); err != nil {
			errs = append(errs, err)
		}
	}
	if len(c.WorkerMap) > 0 {
		if _, err := WorkerMap(c.WorkerMap, workers); err != nil {
			errs = append(errs, err)
		}
	}
	switch given, static := c.Given(), c.Registry == RegistryStatic; {
	case static && len(given) > 1:
		fail(given[1], "", "cannot stand beside snowflake."+given[0])
	case !static && len(given) > 0:
		fail(given[0], "", "is for snowflake.registry=static only")
	}
	if c.WorkerOffset != 0 && !c.FromHostname {
		fail("worker-offset", strconv.FormatInt(c.WorkerOffset, 10), "is for snowflake.worker-from-hostname only")
	}
	return errs
}

// addresses checks the servers of the registry.
func (c Snowflake) addresses() []error {
	var errs []error
	fail := func(value, limit string) {
		errs = append(errs, &Error{Key: "snowflake.registry-address", Value: Redact(value), Limit: limit})
	}
	all := strings.Join(redactAll(Key{Secret: true}, c.Addresses), ListSeparator)
	switch c.Registry {
	case RegistryAuto, RegistryStatic:
		if len(c.Addresses) > 0 {
			fail(all, "must not be set with snowflake.registry="+c.Registry)
		}
	case RegistrySQL:
		if len(c.Addresses) > 1 {
			fail(all, "must be one database")
		} else if len(c.Addresses) == 1 {
			if reason := CheckStore(c.Addresses[0]); reason != "" {
				fail(c.Addresses[0], reason)
			}
		}
	default:
		if len(c.Addresses) == 0 {
			fail("", "must name the servers of snowflake.registry="+c.Registry)
		} else if c.Registry == RegistryEtcd {
			for _, a := range c.Addresses {
				if !isEndpoint(a, true) {
					fail(a, "must be HOST:PORT, or a URL that begins with http:// or https://")
				}
			}
		} else if _, _, err := zookeeper.ParseServers(strings.Join(c.Addresses, ",")); err != nil {
			fail(all, c.badServers())
		}
	}
	return errs
}

// badServers says what is wrong with the servers of ZooKeeper. Earlier versions took all behind the first slash for the chroot, so
// nodes may have worker IDs below it, and below the right chroot they get the same ones.
func (c Snowflake) badServers() string {
	const form = "must be HOST:PORT of each server, with a /chroot at the end of the last one if there is one"
	if _, behind, _ := strings.Cut(strings.Join(c.Addresses, ","), "/"); !strings.Contains(behind, ",") {
		return form
	}
	return form + ", and of no other. If nodes have run with this, they have their worker IDs from other registries, one for each order of the servers: " +
		"stop all nodes and Java servers of these before you correct it for each, do not run leaf worker init, and start them when the longest horizon has passed" + orLater
}

// isEndpoint reports whether text is host:port, or, if allowed, a URL of one.
func isEndpoint(text string, urls bool) bool {
	if u, err := url.Parse(text); urls && err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		text = u.Host
	}
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && n > 0 && host != "" && !strings.ContainsAny(host, "/@, ")
}

// WorkerRange reads FIRST-LAST; nothing means all workers.
func WorkerRange(text string, workers Workers) (leaf.Range, error) {
	if text == "" {
		return leaf.Range{Lo: 0, Hi: workers.Most + 1}, nil
	}
	first, last, found := strings.Cut(text, "-")
	lo, err1 := strconv.ParseUint(first, 10, 32)
	hi, err2 := strconv.ParseUint(last, 10, 32)
	if !found || err1 != nil || err2 != nil || lo > hi || int64(hi) > workers.Most {
		return leaf.Range{}, &Error{Key: "snowflake.worker-range", Value: text, Limit: "must be FIRST-LAST within " + workers.String()}
	}
	return leaf.Range{Lo: int64(lo), Hi: int64(hi) + 1}, nil
}

// WorkerNumber reads a worker ID. value is what the error shows.
func WorkerNumber(key, value, text string, workers Workers) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || int64(n) > workers.Most {
		return 0, &Error{Key: key, Value: value, Limit: "must be a worker ID within " + workers.String()}
	}
	return int64(n), nil
}

// WorkerMap reads the worker IDs by address. No number may stand there twice: that
// would be two nodes with the same IDs.
func WorkerMap(entries []string, workers Workers) (map[string]int64, error) {
	const key = "snowflake.worker-map"
	byAddress := make(map[string]int64, len(entries))
	var numbers []int64
	for _, entry := range entries {
		address, number, found := strings.Cut(entry, "=")
		ap, err := netip.ParseAddrPort(strings.TrimSpace(address))
		if !found || err != nil {
			return nil, &Error{Key: key, Value: entry, Limit: "must be IP:PORT=N"}
		}
		n, err := WorkerNumber(key, entry, strings.TrimSpace(number), workers)
		if err != nil {
			return nil, err
		}
		address = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
		if _, twice := byAddress[address]; twice {
			return nil, &Error{Key: key, Value: entry, Limit: "repeats the address " + address}
		}
		if slices.Contains(numbers, n) {
			return nil, &Error{Key: key, Value: entry, Limit: fmt.Sprintf("repeats the worker ID %d: two nodes would issue the same IDs", n)}
		}
		byAddress[address] = n
		numbers = append(numbers, n)
	}
	return byAddress, nil
}
