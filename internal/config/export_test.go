package config

import "strings"

// TranslateJDBC has no exported door of its own.
var TranslateJDBC = translateJDBC

// SharedStore is the limit that TestUnknownRegistryIsShared asks, beyond the words of the key.
func (c Config) SharedStore() error { return c.sharedStore() }

// FileWarning says what FileWarnings does of a file with this mode and owner.
var FileWarning = fileWarning

type Property struct {
	Key, Value string
	Line       int
}

// ParseProperties reads the text of a .properties file.
func ParseProperties(data []byte) ([]Property, error) {
	entries, err := parseProperties("x.properties", propertyText(data))
	var out []Property
	for _, e := range entries {
		out = append(out, Property{e.key, e.value, e.line})
	}
	return out, err
}

// ParseYAML returns the keys that a YAML file sets.
func ParseYAML(data []byte) (map[string][]string, error) {
	settings, err := yamlSettings("x.yaml", data)
	out := map[string][]string{}
	for _, s := range settings {
		out[s.key] = s.values
	}
	return out, err
}

// FenceURL takes a value of segment.cluster-fence apart.
func FenceURL(text string) (scheme string, servers []string, folder, name string, err error) {
	c, err := ParseCoordinator(FenceKey, text, EtcdFence)
	switch {
	case err != nil:
		return "", nil, "", "", err
	case c.ZooKeeper != nil:
		return "zookeeper", c.ZooKeeper.Servers, c.ZooKeeper.Chroot, c.ZooKeeper.Name, nil
	}
	for _, e := range c.Etcd.Endpoints {
		transport, host, _ := strings.Cut(e, "://")
		scheme = map[string]string{"http": "etcd", "https": "etcds"}[transport]
		servers = append(servers, host)
	}
	return scheme, servers, "", strings.TrimPrefix(c.Etcd.Prefix, EtcdFence+"/"), nil
}

// FenceLimit is what an error about such a value says.
const FenceLimit = CoordinatorForm
