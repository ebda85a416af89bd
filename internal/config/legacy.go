package config

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
	legacyZooKeeper = "leaf.snowflake.zk.address"
	legacyPort      = "leaf.snowflake.port"
	legacyMode      = "leaf.snowflake.mode"
	legacyWorkers   = "leaf.snowflake.local.workIdMap"
)

// javaNull is what the Java server makes of a leaf.name that is missing.
const javaNull = "null"

// legacySnowflakeKeys say how snowflake mode is served, if it is.
var legacySnowflakeKeys = []string{legacyZooKeeper, legacyPort, legacyMode, legacyWorkers}

// legacyConfig is what a leaf.properties file means here.
type legacyConfig struct {
	name     string
	settings []setting
	notes    []string
	// needs has, by key, the error to report if no other source sets it, because what the file says of it is of no use, and the
	// default would be worse: the embedded database starts numbering anew, and by another name other nodes have the same worker IDs.
	needs map[string]error
	// snowflake is what is wrong with the keys of snowflake mode: a node whose mode another source switches off does without them.
	snowflake error
}

// translateProperties reads a leaf.properties file. As in Java, a missing
// leaf.segment.enable or leaf.snowflake.enable means true.
func translateProperties(path string, data []byte) (legacyConfig, error) {
	file := filepath.Base(path)
	entries, err := parseProperties(file, propertyText(data))
	if err != nil {
		return legacyConfig{}, err
	}
	t := translator{file: file, seen: map[string]property{}, javaName: javaName(file, data), out: legacyConfig{needs: map[string]error{}}}
	known := append([]string{legacyName, legacySegment, legacyURL, legacyUser, legacyPassword, legacySnowflake}, legacySnowflakeKeys...)
	bare := make([]string, len(known))
	for i, key := range known {
		bare[i] = strings.TrimPrefix(key, "leaf.")
	}
	for _, p := range entries {
		p.value = strings.TrimSpace(p.value)
		if first, twice := t.seen[p.key]; twice {
			t.fail(p, "", fmt.Sprintf("is set twice, first on line %d; the Java server takes the last one", first.line))
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

// javaName returns leaf.name as the Java server reads it, with the blanks behind it and each byte as a letter; without the key its
// path has the word null.
func javaName(file string, data []byte) string {
	entries, _ := parseProperties(file, latin1(data)) // an error is that of the same text in UTF-8
	name := javaNull
	for _, p := range entries {
		if p.key == legacyName {
			name = p.value
		}
	}
	return name
}

type translator struct {
	file     string
	seen     map[string]property
	javaName string
	out      legacyConfig
	errs     []error
}

// at returns where p stands, only the file if it is missing there.
func (t *translator) at(p property) string {
	if p.line == 0 {
		return t.file
	}
	return fmt.Sprintf("%s:%d", t.file, p.line)
}

func (t *translator) fail(p property, value, limit string) {
	t.errs = append(t.errs, &Error{Key: p.key, Value: value, Source: t.at(p), Limit: limit})
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
		t.set("segment.enable", t.at(p), strconv.FormatBool(segment))
	}
	others := len(t.errs)
	needed := t.snowflake()
	t.out.snowflake, t.errs = errors.Join(t.errs[others:]...), t.errs[:others]
	t.database(segment || needed)
}

func (t *translator) database(needed bool) {
	p := t.seen[legacyURL]
	if p.value == "" {
		if needed {
			t.out.needs["store"] = &Error{Key: legacyURL, Source: t.file, Limit: "is missing or blank: it must name the database (or set --store)"}
		}
		return
	}
	url, notes, err := translateJDBC(p.value, t.seen[legacyUser].value, t.seen[legacyPassword].value)
	if err != nil {
		t.out.needs["store"] = &Error{Key: p.key, Value: Redact(p.value), Source: t.at(p), Limit: err.Error() + "; --store (LEAF_STORE) takes the place of this URL: name the database of the Java servers there, with its schema"}
		return
	}
	for _, n := range notes {
		t.note(p, n)
	}
	t.set("store", t.at(p), url)
}
