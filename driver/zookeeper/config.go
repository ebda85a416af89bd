package zookeeper

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// Config says where the servers are. Servers and Name have no default.
type Config struct {
	// Servers are the host and port of each server.
	Servers []string

	// Chroot begins all paths, e.g. "/ids"; "" for none. It is created if missing.
	Chroot string

	// Name is leaf.name of the Java server, the folder below /snowflake; for a Fence
	// the folder below /leaf/fence, for a Directory that below /leaf/node. 1 to 64
	// characters without a slash.
	Name string

	// SessionTimeout is how long a process that went silent counts as running. The
	// servers may raise or lower it to their own limits. 100 ms to 1 h; default 15 s.
	SessionTimeout time.Duration

	// ConnectTimeout bounds one attempt at one server, from the first packet until
	// the session can be used. Default 3 s.
	ConnectTimeout time.Duration

	// Logger receives what the ZooKeeper client wants to say, at debug level. nil:
	// discarded. Errors are returned, not logged.
	Logger *slog.Logger

	// adoptWatch is how long an Original watches a child that it did not write before it takes
	// it for its own (rule I). It is longer than the 3 s of Java's renewals, but for tests.
	adoptWatch time.Duration
}

// ParseServers reads the form of Java's leaf.snowflake.zk.address,
// host:port[,host:port][/chroot]. A port that is missing is 2181. The chroot stands once, behind
// the last server.
func ParseServers(text string) (servers []string, chroot string, err error) {
	hosts := text
	if i := strings.IndexByte(text, '/'); i >= 0 {
		hosts, chroot = text[:i], strings.TrimRight(text[i:], "/")
	}
	for server := range strings.SplitSeq(hosts, ",") {
		server = strings.TrimSpace(server)
		if _, _, err := net.SplitHostPort(server); err != nil {
			host := server
			if inside, ok := strings.CutPrefix(host, "["); ok {
				host = strings.TrimSuffix(inside, "]")
			}
			server = net.JoinHostPort(host, "2181")
		}
		servers = append(servers, server)
	}
	if err := checkServers(servers); err != nil {
		return nil, "", err
	}
	return servers, chroot, checkChroot(chroot)
}

func (c Config) withDefaults() (Config, error) {
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 15*time.Second)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 3*time.Second)
	c.adoptWatch = cmp.Or(c.adoptWatch, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Servers = slices.Clone(c.Servers)
	if err := checkServers(c.Servers); err != nil {
		return c, err
	}
	if err := checkChroot(c.Chroot); err != nil {
		return c, err
	}
	if err := checkElement("name", c.Name); err != nil {
		return c, err
	}
	for _, d := range []struct {
		field    string
		value    time.Duration
		min, max time.Duration
	}{
		{"session-timeout", c.SessionTimeout, 100 * time.Millisecond, time.Hour},
		{"connect-timeout", c.ConnectTimeout, 10 * time.Millisecond, time.Minute},
	} {
		if d.value < d.min || d.value > d.max {
			return c, leaf.BadField(d.field, d.value, fmt.Sprintf("must be %v to %v", d.min, d.max))
		}
	}
	return c, nil
}

func checkServers(servers []string) error {
	if len(servers) == 0 {
		return leaf.BadField("servers", "", "must name at least one host:port")
	}
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	for _, s := range servers {
		if host, port, err := net.SplitHostPort(s); err != nil || host == "" || port == "" || strings.IndexFunc(s, odd) >= 0 {
			return leaf.BadField("servers", s, "must be host:port")
		}
	}
	return nil
}

// checkChroot refuses a chroot with a comma: in zk1/ids,zk2/ids all behind the first slash would be the path. A node that names
// the servers in another order would have another one, and a registry of its own with the same worker IDs.
func checkChroot(chroot string) error {
	if chroot == "" {
		return nil
	}
	if strings.Contains(chroot, ",") {
		return leaf.BadField("chroot", chroot, "must have no comma: the chroot stands once, behind the last server")
	}
	for element := range strings.SplitSeq(strings.TrimPrefix(chroot, "/"), "/") {
		if chroot[0] != '/' || checkElement("chroot", element) != nil {
			return leaf.BadField("chroot", chroot, "must be a path such as /ids")
		}
	}
	return nil
}

// checkElement says whether ZooKeeper, and a person, can have name in a path.
func checkElement(field, name string) error {
	plain := func(r rune) bool { return r != '/' && r != utf8.RuneError && r < 0xd800 && unicode.IsPrint(r) }
	const most = 64
	if n := utf8.RuneCountInString(name); n < 1 || n > most || name == "." || name == ".." ||
		strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) >= 0 {
		return leaf.BadField(field, name, fmt.Sprintf("must have 1 to %d printable characters without a slash", most))
	}
	return nil
}
