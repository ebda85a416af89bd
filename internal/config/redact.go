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

// urlPassword is the password of a URL in a text, with what is around it. It ends at the last @ of
// the word, because a password that is not percent-encoded may hold one.
var urlPassword = regexp.MustCompile(`(://[^\s"'` + "`" + `:@/]*:)[^\s"'` + "`" + `]*@`)

// RedactText hides the passwords of all URLs in a text.
func RedactText(text string) string { return urlPassword.ReplaceAllString(text, "${1}"+hidden+"@") }

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
	out := make([]string, len(values))
	for i, v := range values {
		if k.Secret {
			out[i] = k.Redact(v)
		} else {
			out[i] = RedactText(v)
		}
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
