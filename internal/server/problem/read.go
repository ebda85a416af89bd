package problem

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxBody bounds what Read takes from a reply, in bytes.
const maxBody = 64 << 10

// Read turns a reply that is not 2xx into an error, always an *[Error] unless the
// body cannot be read. A reply that is not a problem, from a proxy for example,
// becomes one without code, sentinel or promise about a retry. Read does not
// close the body.
func Read(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the body of a %d reply: %w", resp.StatusCode, err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == ContentType {
		e := new(Error)
		if json.Unmarshal(body, e) == nil && e.Code != "" {
			e.RetryAfterMilli = max(e.RetryAfterMilli, 0)
			e.Status = resp.StatusCode // what the body says is advisory (RFC 9457, 3.1.2)
			if e.Detail == "" {
				e.Detail = e.Title
			}
			return e
		}
	}
	text := shorten(strings.TrimSpace(string(body)))
	return &Error{
		Title:  http.StatusText(resp.StatusCode),
		Status: resp.StatusCode,
		Detail: fmt.Sprintf("HTTP status %d: %q", resp.StatusCode, text),
	}
}
