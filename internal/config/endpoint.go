package config

import (
	"net/url"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// endpointForm is what an endpoint looks like.
const endpointForm = "must be https://HOST:PORT, the admin.addr of a node"

// validateEndpoint checks how a command reaches a node of another machine. A token must not
// cross a network that can read it.
func (c Config) validateEndpoint() error {
	const alone = "needs --endpoint, and none is set"
	switch {
	case c.Endpoint == "" && c.EndpointCA != "":
		return &Error{Key: "endpoint-ca", Value: c.EndpointCA, Limit: alone}
	case c.Endpoint == "" && c.EndpointServerName != "":
		return &Error{Key: "endpoint-server-name", Value: c.EndpointServerName, Limit: alone}
	case c.Endpoint == "":
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil:
		return &Error{Key: "endpoint", Limit: endpointForm} // the value may hold a password
	case u.User != nil, u.RawQuery != "", u.Fragment != "": // each may be a token
		return &Error{Key: "endpoint", Value: u.Scheme + "://" + u.Host, Limit: endpointForm + ", without user, password and parameters (not shown here); --admin-token-file names the file of the token"}
	case u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "", u.Path != "" && u.Path != "/":
		return &Error{Key: "endpoint", Value: c.Endpoint, Limit: endpointForm}
	case u.Scheme == "http" && !accept.IsLoopback(u.Host):
		return &Error{Key: "endpoint", Value: c.Endpoint, Limit: "must begin with https://, because the network could read the token. If the node listens on loopback only, " +
			"either start it with --tls-cert, --tls-key, --admin-token-file and --admin-addr 0.0.0.0:8081, or run ssh -L 8081:127.0.0.1:8081 " + u.Hostname() + " and use --endpoint http://127.0.0.1:8081"}
	}
	return nil
}
