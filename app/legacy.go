package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The keys of the Java server's leaf.properties, and of its best-known fork.
const (
	legacyName      = "leaf.name"
	legacySegment   = "leaf.segment.enable"
	legacyURL       = "leaf.jdbc.url"
	legacyUser      = "leaf.jdbc.username"
	legacyPassword  = "leaf.jdbc.password"
	legacySnowflake = "leaf.snowflake.enable"
)

// legacySnowflakeKeys configure a mode that this version does not have.
var legacySnowflakeKeys = []string{
	"leaf.snowflake.zk.address",
	"leaf.snowflake.port",
	"leaf.snowflake.mode",
	"leaf.snowflake.local.workIdMap",
}

// legacyConfig is what a leaf.properties file means here.
type legacyConfig struct {
	name     string
	settings []setting
	notes    []string
	// needsStore is the error to report if no other source names a store: the file
	// asks for segment mode and says nothing about the database. Falling back to
	// the embedded one would start numbering anew.
	needsStore error
}

// translateProperties reads a leaf.properties file. As in Java, a missing
// leaf.segment.enable or leaf.snowflake.enable means true.
func translateProperties(path string, data []byte) (legacyConfig, error) {
	file := filepath.Base(path)
	entries, err := parseProperties(file, data)
	if err != nil {
		return legacyConfig{}, err
	}
	t := translator{file: file, seen: map[string]property{}}
	known := append([]string{legacyName, legacySegment, legacyURL, legacyUser, legacyPassword, legacySnowflake}, legacySnowflakeKeys...)
	bare := make([]string, len(known))
	for i, key := range known {
		bare[i] = strings.TrimPrefix(key, "leaf.")
	}
	for _, p := range entries {
		p.value = strings.TrimSpace(p.value)
		if first, twice := t.seen[p.key]; twice {
			t.fail(p, "", fmt.Sprintf("is set twice, first on line %d", first.line))
			continue
		}
		t.seen[p.key] = p
		switch {
		case slices.Contains(known, p.key):
		case strings.HasPrefix(p.key, "leaf."):
			t.fail(p, "", "unknown key"+didYouMean(strings.TrimPrefix(p.key, "leaf."), bare, "leaf."))
		default:
			t.note(p, "is not a key of Leaf and is ignored")
		}
	}
	t.modes()
	t.out.name = t.seen[legacyName].value
	return t.out, errors.Join(t.errs...)
}

type translator struct {
	file string
	seen map[string]property
	out  legacyConfig
	errs []error
}

func (t *translator) at(p property) string { return fmt.Sprintf("%s:%d", t.file, p.line) }

func (t *translator) fail(p property, value, limit string) {
	t.errs = append(t.errs, &ConfigError{Key: p.key, Value: value, Source: t.at(p), Limit: limit})
}

func (t *translator) note(p property, text string) {
	t.out.notes = append(t.out.notes, fmt.Sprintf("%s (%s) %s", p.key, t.at(p), text))
}

// enabled reads a switch. Java takes everything but "true" for false; a word that
// is neither is refused here, because it is most likely meant otherwise.
func (t *translator) enabled(key string) (on, ok bool) {
	p, set := t.seen[key]
	switch strings.ToLower(p.value) {
	case "true":
		return true, true
	case "false", "":
		return !set, true
	}
	t.fail(p, p.value, "must be true or false")
	return false, false
}

func (t *translator) modes() {
	segment, ok := t.enabled(legacySegment)
	if p, set := t.seen[legacySegment]; set && ok {
		t.out.settings = append(t.out.settings, setting{"segment.enable", []string{strconv.FormatBool(segment)}, t.at(p)})
	}
	t.database(segment)
	const only = "this version has segment mode only; set leaf.snowflake.enable=false"
	p, set := t.seen[legacySnowflake]
	if on, _ := t.enabled(legacySnowflake); set && on {
		t.fail(p, p.value, "snowflake mode is not available: "+only)
		return
	}
	for _, key := range legacySnowflakeKeys {
		other, found := t.seen[key]
		switch {
		case !found:
		case set || other.value == "":
			t.note(other, "is ignored, because snowflake mode is off")
		default:
			t.fail(other, "", "leaf.snowflake.enable is not set, which means true to the Java server, but "+only)
			return
		}
	}
}

func (t *translator) database(needed bool) {
	p := t.seen[legacyURL]
	if p.value == "" {
		if needed {
			t.out.needsStore = &ConfigError{Key: legacyURL, Source: t.file, Limit: "is missing or blank: it must name the database with the table leaf_alloc (or set --store)"}
		}
		return
	}
	url, notes, err := translateJDBC(p.value, t.seen[legacyUser].value, t.seen[legacyPassword].value)
	if err != nil {
		t.fail(p, redact(p.value), err.Error())
		return
	}
	for _, n := range notes {
		t.note(p, n)
	}
	t.out.settings = append(t.out.settings, setting{"store", []string{url}, t.at(p)})
}
