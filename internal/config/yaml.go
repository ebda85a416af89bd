package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlErrorLine = regexp.MustCompile(`^yaml: line (\d+): `)

// yamlSettings reads a configuration file: sections are mappings, lists are
// sequences. It walks the nodes itself, because the decoder reports neither where
// a value stands nor which known key an unknown one resembles. Anchors and aliases
// are refused: a configuration of this size needs none, and they can blow up.
func yamlSettings(path string, data []byte) ([]setting, error) {
	r := yamlReader{file: filepath.Base(path), lines: map[string]int{}, sections: map[string]bool{}}
	for _, k := range Keys() {
		r.names = append(r.names, k.Name)
		if section, _, found := strings.Cut(k.Name, "."); found && !r.sections[section] {
			r.sections[section] = true
			r.names = append(r.names, section)
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, r.syntax(err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, r.syntax(err)
		}
		r.fail("", &second, "must hold one document")
		return nil, errors.Join(r.errs...)
	}
	if len(doc.Content) == 1 && !isNull(doc.Content[0]) {
		r.mapping("", doc.Content[0])
	}
	return r.settings, errors.Join(r.errs...)
}

type yamlReader struct {
	file     string
	names    []string
	sections map[string]bool
	lines    map[string]int // where each key and section was seen
	settings []setting
	errs     []error
}

func (r *yamlReader) syntax(err error) error {
	source, text := r.file, err.Error()
	if m := yamlErrorLine.FindStringSubmatch(text); m != nil {
		source, text = source+":"+m[1], text[len(m[0]):]
	}
	return &Error{Source: source, Limit: "not valid YAML: " + strings.TrimPrefix(text, "yaml: ")}
}

func (r *yamlReader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.file, n.Line) }

func (r *yamlReader) fail(key string, n *yaml.Node, limit string) {
	r.errs = append(r.errs, &Error{Key: key, Source: r.at(n), Limit: limit})
}

func (r *yamlReader) mapping(prefix string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		what := "must be a mapping of keys to values"
		if prefix != "" {
			what = "is a section: write its keys below it, indented"
		}
		r.fail(strings.TrimSuffix(prefix, "."), n, what)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			r.fail(strings.TrimSuffix(prefix, "."), name, "a key must be a plain word")
			continue
		}
		key := prefix + name.Value
		if line, seen := r.lines[key]; seen {
			r.fail(key, name, fmt.Sprintf("is set twice, first on line %d", line))
			continue
		}
		r.lines[key] = name.Line
		r.entry(key, name, value)
	}
}

func (r *yamlReader) entry(key string, name, value *yaml.Node) {
	if r.sections[key] {
		if !isNull(value) {
			r.mapping(key+".", value)
		}
		return
	}
	k, known := keyByName(key)
	switch section, rest, dotted := strings.Cut(name.Value, "."); {
	case dotted && r.sections[section]:
		r.fail(key, name, fmt.Sprintf("write it as a section: %s: {%s: …}", section, rest))
		return
	case !known:
		r.fail(key, name, unknown("key", key, key, r.names, ""))
		return
	}
	switch {
	case value.Kind == yaml.ScalarNode && !isNull(value):
		r.add(k, value, value)
	case value.Kind == yaml.SequenceNode && k.List:
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) {
				r.fail(key, item, "must be a list of plain values")
				return
			}
		}
		r.add(k, value, value.Content...)
	case isNull(value):
		r.fail(key, name, "has no value; remove the line for the default")
	case value.Kind == yaml.AliasNode:
		r.fail(key, value, "aliases are not supported; write the value out")
	case k.List:
		r.fail(key, value, "must be one value or a list of values")
	default:
		r.fail(key, value, "must be one plain value")
	}
}

func (r *yamlReader) add(k Key, at *yaml.Node, nodes ...*yaml.Node) {
	s := setting{key: k.Name, values: []string{}, source: r.at(at)}
	for _, n := range nodes {
		s.values = append(s.values, n.Value)
	}
	r.settings = append(r.settings, s)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
