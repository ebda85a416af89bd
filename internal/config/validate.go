package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// Validate checks every value against its limits, and the combinations. The error
// joins all it finds; each is a [*Error].
func (c Config) Validate() error { return c.validate(true) }

// validate is Validate, for a command without what only a node must have: an identity.
func (c Config) validate(node bool) error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	root := reflect.ValueOf(c)
	for _, k := range Keys() {
		if !k.List {
			add(k.check(root.FieldByIndex(k.index)))
		}
	}
	if c.DataDir == "" && (node || c.Endpoint == "") {
		add(&Error{Key: "data-dir", Limit: "must not be empty"})
	}
	add(checkAddr("http.addr", c.HTTP.Addr))
	for _, err := range c.validateServers() {
		add(err)
	}
	add(c.validateEndpoint())
	for _, err := range c.Node.validate() {
		add(err)
	}
	for _, err := range checkStores(c.Stores, c.TagRules, c.Segment.Near) {
		add(err)
	}
	if !c.Segment.Enable && !c.Snowflake.Enable {
		add(&Error{Key: "segment.enable", Value: "false", Limit: "leaves no mode to serve, because snowflake.enable=false as well"})
	}
	for _, err := range c.Snowflake.validate() {
		add(err)
	}
	for _, err := range c.validateEtcdStore() {
		add(err)
	}
	if node && c.Snowflake.Enable {
		add(c.Snowflake.identity(c.HTTP.Addr))
		add(c.standby())
	}
	add(checkPostURL("alarm.webhook", c.Alarm.Webhook))
	add(checkPostURL("trace.url", c.Trace.URL))
	if c.Segment.ClusterFence != "" {
		_, err := ParseCoordinator(FenceKey, c.Segment.ClusterFence, EtcdFence)
		add(err)
	}
	if c.ConnectTimeout > c.Segment.LoadTimeout {
		add(&Error{
			Key: "store-connect-timeout", Value: shortDuration(c.ConnectTimeout),
			Limit: fmt.Sprintf("must not be above segment.load-timeout=%s", shortDuration(c.Segment.LoadTimeout)),
		})
	}
	if c.ShutdownTimeout < c.Segment.LoadTimeout {
		add(&Error{
			Key: "shutdown-timeout", Value: shortDuration(c.ShutdownTimeout),
			Limit: fmt.Sprintf("must not be below segment.load-timeout=%s, or no unused ID is returned to a slow database", shortDuration(c.Segment.LoadTimeout)),
		})
	}
	if node && len(errs) == 0 { // else it may only be a slip that makes the node look shared
		add(c.sharedStore())
		add(c.checkOpen())
	}
	return errors.Join(errs...)
}

// sharedStore refuses the embedded database for a node that shares something else with other
// nodes: each of them would hand out the same numbers of the same tags, and have the same worker
// IDs, if those are in it (rule W).
func (c Config) sharedStore() error {
	if c.StorePrivate {
		return nil
	}
	if !c.NeedsStores() || len(c.Stores) > 0 {
		return c.sharedFile()
	}
	shared := c.shared(false)
	if shared == "" {
		return nil
	}
	do := "If the tags and worker IDs of this node are meant to be its own, although other nodes then issue the same IDs: store-private=true"
	if !c.Segment.Enable {
		do = "Or take worker IDs from another registry that they share: snowflake.registry. " + do
	}
	if c.Snowflake.Enable && !c.Snowflake.UsesStores() { // else the worker IDs would still be in the embedded database
		do = "Without segment mode: segment.enable=false; if the tags of this node are meant to be its own: store-private=true"
	}
	return &Error{Key: "store", Limit: "must name the database that the nodes share, because " + shared + " says that there are several: with the embedded database each of them would issue the same numbers. " + do}
}

// sharedFile is sharedStore for a node that names an SQLite file: nodes of one machine can share it, and those of
// others have another file of that name.
func (c Config) sharedFile() error {
	const limit = "is a file of this machine, and %s says that there are nodes on others: each of them would have a file of its own, and issue the same IDs. " +
		"Name a database that all nodes reach; if all are on this machine, or what is in the file is meant to be its own: store-private=true"
	if file := slices.IndexFunc(c.Stores, isSQLite); file >= 0 && c.NeedsStores() {
		if shared := c.shared(true); shared != "" {
			return &Error{Key: "store", Value: c.Stores[file], Limit: fmt.Sprintf(limit, shared)}
		}
	}
	if s := c.Snowflake; s.Enable && s.Registry == RegistrySQL && slices.ContainsFunc(s.Addresses, isSQLite) {
		shared := c.shared(true)
		if c.Segment.Enable && slices.ContainsFunc(c.Stores, func(store string) bool { return !isSQLite(store) }) {
			shared = "store"
		}
		if shared != "" {
			return &Error{Key: "snowflake.registry-address", Value: s.Addresses[0], Limit: fmt.Sprintf(limit, shared)}
		}
	}
	return nil
}

// isSQLite reports whether a value of store is an SQLite file.
func isSQLite(store string) bool { return strings.HasPrefix(CutStoreName(store).URL, "sqlite:") }

// shared returns the setting that says that there are other nodes, or only nodes on other machines, "" if none does.
func (c Config) shared(elsewhere bool) string {
	switch s := c.Snowflake; {
	case !s.Enable || s.Registry == RegistryAuto:
	case s.Registry == RegistryStatic:
		machine := func(entry string) string { return entry[:strings.LastIndexByte(entry, ':')] } // of IP:PORT=N
		if len(s.WorkerMap) > 1 && (!elsewhere || slices.ContainsFunc(s.WorkerMap, func(entry string) bool { return machine(entry) != machine(s.WorkerMap[0]) })) {
			return "snowflake.worker-map"
		}
		if s.FromHostname { // one number for each host
			return "snowflake.worker-from-hostname"
		}
	case s.Registry == RegistrySQL:
		if len(s.Addresses) > 0 && (!elsewhere || !isSQLite(s.Addresses[0])) {
			return "snowflake.registry-address"
		}
	default: // also a kind that is added later
		return "snowflake.registry=" + s.Registry
	}
	switch {
	case c.Segment.Enable && c.Segment.ClusterFence != "":
		return "segment.cluster-fence"
	case c.Node.Discovery != "" && c.Node.Discovery != AddrOff && c.Node.Discovery != DiscoveryStore:
		return "node.discovery"
	}
	return ""
}

// standby refuses a pair whose nodes do not know of each other: both would serve.
func (c Config) standby() error {
	with, allowed := "", ""
	switch s := c.Snowflake; {
	case !s.Standby:
	case s.Registry == RegistryStatic:
		with = "snowflake.registry=static"
	case s.UsesStores() && len(c.Stores) == 0:
		with = "the embedded database"
	case c.StorePrivate: // on one machine
	case s.UsesStores() && isSQLite(c.Stores[0]), s.Registry == RegistrySQL && slices.ContainsFunc(s.Addresses, isSQLite):
		with, allowed = "an SQLite file on each machine", "; if both are on this machine: store-private=true"
	}
	if with == "" {
		return nil
	}
	return &Error{Key: "snowflake.standby", Value: "true", Limit: "needs a registry that both nodes of the pair use: with " + with + " neither of them knows of the other, and both would issue the same IDs" + allowed}
}

func checkAddr(key, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		if n, convErr := strconv.ParseUint(port, 10, 16); convErr == nil && strconv.FormatUint(n, 10) == port {
			return nil
		}
	}
	return &Error{Key: key, Value: addr, Limit: "must be HOST:PORT with a port from 0 to 65535; an IPv6 host stands in brackets: [::1]:8080"}
}

// checkPostURL checks where a node posts something; nothing is also valid.
func checkPostURL(key, text string) error {
	if text == "" {
		return nil
	}
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return &Error{Key: key, Value: redactPath(text), Limit: "must be a URL that begins with http:// or https://"}
}

// NamedURL is one value of the key store.
type NamedURL struct{ Name, URL string }

var storeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CutStoreName splits NAME=URL. What stands before the first "=" is a name only
// if it looks like one, because a URL may contain "=" as well.
func CutStoreName(value string) NamedURL {
	if name, url, found := strings.Cut(value, "="); found && storeName.MatchString(name) {
		return NamedURL{name, url}
	}
	return NamedURL{"", value}
}

func checkStores(values, rules, near []string) []error {
	var errs []error
	fail := func(value, limit string) {
		errs = append(errs, &Error{Key: "store", Value: Redact(value), Limit: limit})
	}
	var names, urls []string
	prefixes := append(sqldb.Prefixes(), "etcd://", "etcds://")
	for _, value := range values {
		s := CutStoreName(value)
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.URL, p) && len(s.URL) > len(p) }) {
			last := len(prefixes) - 1
			fail(value, "must begin with "+strings.Join(prefixes[:last], ", ")+" or "+prefixes[last])
			continue
		}
		switch {
		case len(values) > 1 && s.Name == "":
			fail(value, "needs a name, because there are several stores: NAME=URL, NAME of letters, digits, - and _")
		case len(values) == 1 && s.Name != "":
			fail(value, "must have no name, because it is the only store")
		case s.Name != "" && slices.Contains(names, s.Name):
			fail(value, fmt.Sprintf("repeats the name %s", s.Name))
		case slices.Contains(urls, s.URL):
			fail(value, "repeats a database; two names for one database would issue its IDs twice")
		default:
			check := CheckStore
			if IsEtcd(s.URL) {
				check = func(url string) string { return checkEtcdStore(url, len(values) == 1) }
			}
			if reason := check(s.URL); reason != "" {
				fail(value, reason)
			}
		}
		names, urls = append(names, s.Name), append(urls, s.URL)
	}
	return append(errs, checkRules(names, rules, near)...)
}

// checkRules checks what names stores. names are those of all stores, in which a store without a name is "".
func checkRules(names, rules, near []string) (errs []error) {
	for _, text := range rules {
		rule, err := segment.ParseTagRule(text)
		switch {
		case len(names) < 2:
			errs = append(errs, &Error{Key: "tag-rule", Value: text, Limit: "makes sense only with several stores"})
		case err != nil:
			errs = append(errs, &Error{Key: "tag-rule", Value: text, Limit: fmt.Sprintf("must be PATTERN=NAME, PATTERN an exact tag or a prefix that ends in *; or PATTERN=NAME,NAME*BLOCK with %d databases at most, BLOCK from %d to %d", segment.MaxMasters, segment.MinBlock, int64(segment.MaxBlock))})
		case slices.ContainsFunc(rule.Names(), func(name string) bool { return !slices.Contains(names, name) }):
			errs = append(errs, &Error{Key: "tag-rule", Value: text, Limit: fmt.Sprintf("names no store; the stores are %s", strings.Join(names, ", "))})
		}
	}
	for i, name := range near {
		if !slices.Contains(names, name) || name == "" || slices.Contains(near[:i], name) {
			errs = append(errs, &Error{Key: "segment.near", Value: name, Limit: fmt.Sprintf("must name a store, each one once; the stores are %s", strings.Join(names, ", "))})
		}
	}
	return errs
}
