package config

import "strings"

// retired are the keys of earlier programs, each with what does its job now.
var retired = map[string]string{
	"snowflake.local-extend": "is no longer a key; a longer snowflake.horizon does its job: IDs go on for that long while the registry is down",
	"segment.give-back":      "is no longer a key; its name is segment.return-unused",
}

// Retired says what does the job of a key that an earlier program had. name is the
// key's name, its flag without hyphens in front, or its environment variable; "" is the
// answer for any other name.
func Retired(name string) string {
	for key, text := range retired {
		k := Key{Name: key}
		if name == key || strings.TrimPrefix(name, "no-") == k.Flag() || name == k.Env() {
			return text
		}
	}
	return ""
}

// unknown is the end of an error about a name that is no key: what replaced it, or what
// the user most likely meant.
func unknown(what, full, word string, candidates []string, prefix string) string {
	if text := Retired(full); text != "" {
		return text
	}
	return "unknown " + what + didYouMean(word, candidates, prefix)
}
