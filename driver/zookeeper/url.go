package zookeeper

import (
	"net"
	"path"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// URLForm is what ParseURL reads, for people.
const URLForm = "zookeeper://HOST:PORT,HOST:PORT/NAME"

// ParseURL reads zookeeper://HOST:PORT,…/[FOLDER/]NAME. The folder, which may have
// several elements, is the chroot. The error is leaf.ErrBadRequest and shows nothing of
// the text.
func ParseURL(text string) (Config, error) {
	rest, ours := strings.CutPrefix(text, "zookeeper://")
	hosts, place, named := strings.Cut(rest, "/") // package url does not know lists of hosts
	wrong := leaf.BadField("zookeeper URL", "zookeeper://...", "must be "+URLForm)
	if !ours || !named || strings.ContainsAny(place, "?#") {
		return Config{}, wrong
	}
	folder, name := path.Split(place)
	c := Config{Servers: strings.Split(hosts, ","), Name: name}
	if folder != "" {
		c.Chroot = "/" + strings.TrimSuffix(folder, "/")
	}
	for _, server := range c.Servers {
		_, port, err := net.SplitHostPort(server)
		n, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil || n == 0 || strings.ContainsAny(server, "@, ") {
			return Config{}, wrong
		}
	}
	if checkServers(c.Servers) != nil || checkChroot(c.Chroot) != nil || checkElement("name", c.Name) != nil {
		return Config{}, wrong
	}
	return c, nil
}
