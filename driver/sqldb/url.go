package sqldb

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// target is a parsed store URL.
type target struct {
	dialect  *dialect
	scheme   string
	user     *url.Userinfo // nil if the URL names none
	host     string        // without brackets; empty for a socket
	port     string
	database string
	params   url.Values // only names that the dialect knows, each once
	path     string     // of an embedded database, absolute
}

// parse splits a store URL. Errors never quote a part that could hold a piece of
// a password which was not percent-encoded.
func parse(text string) (target, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	d := dialectFor(scheme)
	if !ok || d == nil {
		if !ok {
			scheme = ""
		}
		return target{}, leaf.BadField("store scheme", scheme, "must be one of "+strings.Join(schemes(), ", "))
	}
	if d.embedded {
		return parsePath(d, scheme, rest)
	}
	return parseNetwork(d, scheme, text)
}

// parsePath reads sqlite:path and sqlite:///path. The path is taken literally.
func parsePath(d *dialect, scheme, rest string) (target, error) {
	path := rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if !strings.HasPrefix(after, "/") {
			return target{}, leaf.BadField("store path", rest, "must be "+scheme+":path or "+scheme+":///path")
		}
		path = after
	}
	switch {
	case path == "":
		return target{}, leaf.BadField("store path", path, "is missing: "+scheme+":path")
	case strings.HasPrefix(path, ":"):
		return target{}, leaf.BadField("store path", path, "must be a file: a database in memory would repeat IDs after a restart")
	case strings.ContainsAny(path, "?\x00"):
		return target{}, leaf.BadField("store path", path, "must not contain ? or a zero byte: there are no parameters")
	case strings.HasSuffix(path, "/"):
		return target{}, leaf.BadField("store path", path, "must be a file, not a folder")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return target{}, leaf.BadField("store path", path, err.Error())
	}
	return target{dialect: d, scheme: scheme, path: abs}, nil
}

const oneHost = "must be one host: a second one could be a replica, which lacks the newest rows"

func parseNetwork(d *dialect, scheme, text string) (target, error) {
	const encode = "cannot be read; percent-encode special characters of user and password (@ is %40, / is %2F, # is %23)"
	shown := scheme + "://..."
	after, ok := strings.CutPrefix(text, scheme+"://")
	if !ok {
		return target{}, leaf.BadField("store", shown, "must be "+scheme+"://user:password@host:port/database")
	}
	u, err := url.Parse(text)
	if err != nil || strings.Contains(after, "#") {
		return target{}, leaf.BadField("store", shown, encode)
	}
	if i := strings.IndexAny(after, "/?"); i >= 0 && strings.Contains(after[i:], "@") {
		return target{}, leaf.BadField("store", shown, encode)
	}
	t := target{dialect: d, scheme: scheme, user: u.User, host: u.Hostname(), port: u.Port()}
	if t.params, err = parseParams(d, u.RawQuery); err != nil {
		return target{}, err
	}
	t.database = strings.TrimPrefix(u.Path, "/")
	switch {
	case t.database == "":
		return target{}, leaf.BadField("store database", "", "is missing: "+scheme+"://user:password@host:port/database")
	case strings.ContainsAny(t.database, "/\x00"):
		return target{}, leaf.BadField("store database", t.database, "must not contain / or a zero byte")
	}
	socket := t.params.Get(d.socketParam)
	switch {
	case socket != "" && (t.host != "" || t.port != ""):
		return target{}, leaf.BadField("store host", t.host, "must be empty beside "+d.socketParam+"="+socket)
	case socket != "" && !filepath.IsAbs(socket):
		return target{}, leaf.BadField("store parameter "+d.socketParam, socket, "must be an absolute path")
	case strings.Contains(socket, ","): // PostgreSQL's library takes it for several servers
		return target{}, leaf.BadField("store parameter "+d.socketParam, socket, oneHost)
	case socket != "":
		return t, nil
	case t.host == "":
		return target{}, leaf.BadField("store host", "", "is missing: "+scheme+"://user:password@host:port/database")
	case t.port == "":
		t.port = d.port
	}
	if strings.Contains(t.host, ",") {
		return target{}, leaf.BadField("store host", t.host, oneHost)
	}
	if _, err := netip.ParseAddr(t.host); err != nil && strings.Contains(t.host, ":") {
		return target{}, leaf.BadField("store host", t.host, "must be a name or an IP address, IPv6 in brackets")
	}
	if n, err := strconv.Atoi(t.port); err != nil || n < 1 || n > 65535 {
		return target{}, leaf.BadField("store port", t.port, "must be 1 to 65535")
	}
	return t, nil
}

func parseParams(d *dialect, query string) (url.Values, error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, leaf.BadField("store parameters", "...", "cannot be read; percent-encode special characters")
	}
	for name, values := range params {
		switch {
		case !slices.Contains(d.params, name):
			return nil, leaf.BadField("store parameter", name, "is unknown; "+d.name+" knows "+strings.Join(d.params, ", "))
		case len(values) > 1:
			return nil, leaf.BadField("store parameter", name, "is given twice")
		case values[0] == "":
			return nil, leaf.BadField("store parameter", name, "must not be empty")
		}
	}
	return params, nil
}

// url returns t as a URL, with its password.
func (t target) url() *url.URL {
	query := strings.ReplaceAll(t.params.Encode(), "+", "%20") // pgconn, as libpq, takes a plus for a plus
	u := &url.URL{Scheme: t.scheme, User: t.user, Path: "/" + t.database, RawQuery: query}
	u.RawPath = "/" + strings.ReplaceAll(url.PathEscape(t.database), "@", "%40") // parse takes an @ here for a piece of a password
	switch {
	case strings.Contains(t.host, ":"):
		u.Host = "[" + t.host + "]"
	default:
		u.Host = t.host
	}
	if t.port != "" {
		u.Host += ":" + t.port
	}
	return u
}

// redacted returns t as text that may be shown: a password is xxxxx.
func (t target) redacted() string {
	if t.dialect.embedded {
		return t.scheme + ":" + t.path
	}
	return t.url().Redacted()
}

// Files returns the files with certificates and keys that the URL of a database names. A URL
// that is not valid has none.
func Files(url string) (paths []string) {
	t, err := parse(url)
	if err != nil {
		return nil
	}
	for _, name := range t.dialect.files {
		if path := t.params.Get(name); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}
