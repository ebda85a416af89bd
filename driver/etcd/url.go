package etcd

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// URLForm is what ParseURL reads, for people.
const URLForm = "etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS)"

// ParseURL reads etcd://[USER:PASSWORD@]HOST:PORT,…/NAME, or etcds:// with TLS, for what
// lies under a folder such as "/leaf/node": its prefix is the folder and the name. The
// error is leaf.ErrBadRequest and shows nothing of the text.
func ParseURL(text, folder string) (Config, error) {
	scheme, rest, _ := strings.Cut(text, "://") // package url does not know lists of hosts
	hosts, name, named := strings.Cut(rest, "/")
	transport := map[string]string{"etcd": "http", "etcds": "https"}[scheme]
	wrong := leaf.BadField("etcd URL", "etcd://...", "must be "+URLForm)
	if transport == "" || !named || !isName(name) {
		return Config{}, wrong
	}
	c := Config{Prefix: folder + "/" + name}
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		u, err := url.Parse(scheme + "://" + hosts[:at] + "@host")
		if err != nil {
			return Config{}, wrong
		}
		c.Username = u.User.Username()
		c.Password, _ = u.User.Password()
		if hosts = hosts[at+1:]; c.Username == "" || c.Password == "" {
			return Config{}, wrong
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if !isHostPort(host) {
			return Config{}, wrong
		}
		c.Endpoints = append(c.Endpoints, transport+"://"+host)
	}
	return c.complete()
}

// isName reports whether a person can tell name from others in a key.
func isName(name string) bool {
	const most = 64
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune("/?#", r) }
	return name != "" && name != "." && name != ".." && utf8.RuneCountInString(name) <= most && !strings.ContainsFunc(name, odd)
}

func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && n > 0 && host != "" && !strings.ContainsAny(host, "/@, ")
}
