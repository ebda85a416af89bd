package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// translateJDBC turns the JDBC URL of the Java server, with its separate user name
// and password, into a store URL. Parameters of the Java driver that have a
// meaning here are translated, those that only concern Java are dropped with a
// note, and all others are refused by name: one of them might matter. The error
// does not contain the URL.
func translateJDBC(jdbc, username, password string) (store string, notes []string, err error) {
	dialect, rest, err := cutJDBC(jdbc)
	if err != nil {
		return "", nil, err
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	if database, err = url.PathUnescape(database); err != nil || strings.Contains(database, "/") {
		return "", nil, errors.New("the name of the database is not valid")
	}
	host, user, err := dialect.authority(authority)
	if err != nil {
		return "", nil, err
	}
	u := url.URL{Scheme: dialect.scheme, Host: host}
	params, err := dialect.parameters(query)
	if err != nil {
		return "", nil, err
	}
	if username == "" {
		username = firstOf(params.user, user.Username())
	}
	if password == "" {
		inURL, _ := user.Password()
		password = firstOf(params.password, inURL)
	}
	switch {
	case username != "" && password != "":
		u.User = url.UserPassword(username, password)
	case username != "":
		u.User = url.User(username)
	case password != "":
		return "", nil, errors.New("a password without a user name: set leaf.jdbc.username")
	}
	if database == "" && dialect.scheme == "postgres" {
		database = username // as its driver does
	}
	if database == "" {
		return "", nil, errors.New("names no database: it must end in /NAME")
	}
	u.Path = "/" + database
	u.RawQuery = params.out.Encode()
	return u.String(), params.notes, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// cutJDBC returns the driver and what follows "//".
func cutJDBC(jdbc string) (*jdbcDialect, string, error) {
	rest, found := strings.CutPrefix(jdbc, "jdbc:")
	if !found {
		return nil, "", errors.New("must begin with jdbc:mysql://, jdbc:mariadb:// or jdbc:postgresql://")
	}
	driver, rest, _ := strings.Cut(rest, ":")
	var dialect *jdbcDialect
	switch strings.ToLower(driver) {
	case "mysql", "mariadb":
		dialect = &mysqlJDBC
	case "postgresql":
		dialect = &postgresJDBC
		if !strings.HasPrefix(rest, "/") { // jdbc:postgresql:database
			rest = "///" + rest
		}
	default:
		return nil, "", fmt.Errorf("driver %q is not supported: MySQL, MariaDB and PostgreSQL are", driver)
	}
	address, found := strings.CutPrefix(rest, "//")
	if !found {
		return nil, "", errors.New("is not one server: replication, load balancing and fail-over are not the client's business here; name the primary as jdbc:" + driver + "://host:port/database")
	}
	return dialect, address, nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

func (d *jdbcDialect) authority(text string) (host string, user *url.Userinfo, err error) {
	if strings.ContainsAny(text, ",()") {
		return "", nil, errors.New("names several hosts or uses the address=(…) form: name one host, the primary, as host:port")
	}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		name, password, hasPassword := strings.Cut(text[:at], ":")
		name, err1 := url.PathUnescape(name)
		password, err2 := url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return "", nil, errors.New("the user name or the password has a broken % escape")
		}
		user = url.User(name)
		if hasPassword {
			user = url.UserPassword(name, password)
		}
		text = text[at+1:]
	}
	host, port := text, d.port
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host == "" {
		host = "localhost"
	}
	if !hostName.MatchString(host) && net.ParseIP(host) == nil {
		return "", nil, fmt.Errorf("host %q is not valid", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", nil, fmt.Errorf("port %q must be 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), user, nil
}
