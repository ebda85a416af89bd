package config

import (
	"regexp"
	"strings"
)

const hidden = "xxxxx"

var (
	secretParameter = regexp.MustCompile(`(?i)([?&;][^=&;]*(?:password|passwd|pwd|secret|token|credential)[^=&;]*=)[^&;]*`)
	// onlyPort is what follows the first colon of an address without a password, also in
	// a list: 2379 of a:2379, 2379,b:2379 of a:2379,b:2379.
	onlyPort = regexp.MustCompile(`^\d*(,[^:,]+:\d+)*$`)
)

// Redact hides the passwords in one store URL. It does not need a valid one,
// because it also serves the error about an invalid one; in doubt it hides more.
func Redact(u string) string {
	return secretParameter.ReplaceAllString(redactUser(u), "${1}"+hidden)
}

func redactUser(u string) string {
	start := strings.Index(u, "://")
	if start < 0 {
		if at := strings.LastIndexByte(u, '@'); at >= 0 && !strings.Contains(u, "sqlite:") {
			return hidden + u[at:]
		}
		return u
	}
	start += len("://")
	if at := strings.LastIndexByte(u[start:], '@'); at >= 0 {
		if colon := strings.IndexByte(u[start:start+at], ':'); colon >= 0 {
			return u[:start+colon+1] + hidden + u[start+at:]
		}
		return u
	}
	authority, _, _ := strings.Cut(u[start:], "/")
	if _, port, found := strings.Cut(authority, ":"); found && !strings.HasPrefix(authority, "[") && !onlyPort.MatchString(port) {
		return u[:start+len(authority)-len(port)] + hidden
	}
	return u
}

// redactPath hides all of a URL but scheme and host. A webhook's path is often all that
// its receiver asks for.
func redactPath(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return hidden
	}
	rest, _, _ = strings.Cut(rest, "/")
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:] + "/" + hidden
}

// redactAll returns the values of a key for people.
func redactAll(k Key, values []string) []string {
	if !k.Secret {
		return values
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = k.Redact(v)
	}
	return out
}

// Redact returns a value of the key for people.
func (k Key) Redact(value string) string {
	switch {
	case value == "":
		return ""
	case k.secretAll:
		return hidden
	case k.secretPath:
		return redactPath(value)
	}
	return Redact(value)
}
