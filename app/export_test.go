package app

// Parsers that have no exported door of their own.
var (
	Redact        = redact
	TranslateJDBC = translateJDBC
)

// Property is one entry of a .properties file.
type Property struct {
	Key, Value string
	Line       int
}

// ParseProperties reads the text of a .properties file.
func ParseProperties(data []byte) ([]Property, error) {
	entries, err := parseProperties("x.properties", data)
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
