package httpd

import (
	"strconv"
	"strings"
)

const (
	applicationJSON = "application/json"
	contentTypeJSON = applicationJSON
)

// prefersJSON reports whether the values of the field Accept prefer
// application/json to text/plain: by quality, and at the same quality by how
// specifically each is named. With no difference, text it is; so too when neither
// is acceptable, because Java's own HTTP client asks for "text/html, image/gif"
// and means a number. An element that cannot be understood does not count.
func prefersJSON(accept []string) bool {
	if len(accept) == 0 {
		return false
	}
	text, json := preference{of: textPlain}, preference{of: applicationJSON}
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			media, q, ok := parseElement(element)
			if ok {
				text.consider(media, q)
				json.consider(media, q)
			}
		}
	}
	if json.q != text.q {
		return json.q > text.q
	}
	return json.q > 0 && json.specific > text.specific
}

// preference is how much a client wants one media type: the quality of the most
// specific range that matches it (RFC 9110, 12.5.1).
type preference struct {
	of       string
	specific int // 0 none, 1 */*, 2 type/*, 3 type/subtype
	q        float64
}

func (p *preference) consider(media string, q float64) {
	kind, _, _ := strings.Cut(p.of, "/")
	var specific int
	switch media {
	case p.of:
		specific = 3
	case kind + "/*":
		specific = 2
	case "*/*":
		specific = 1
	default:
		return
	}
	if specific > p.specific || specific == p.specific && q > p.q {
		p.specific, p.q = specific, q
	}
}

// parseElement splits `type/subtype;param=x;q=0.5`. Parameters other than q are
// ignored: we have one variant of each type.
func parseElement(element string) (media string, q float64, ok bool) {
	media, params, _ := strings.Cut(element, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	q = 1
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		var err error
		q, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // the negation catches NaN
			return "", 0, false
		}
	}
	return media, q, media != ""
}
