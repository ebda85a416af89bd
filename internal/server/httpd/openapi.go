package httpd

import (
	_ "embed"
	"net/http"
)

// openAPI is the description of all routes. It is written by hand, and
// TestOpenAPI holds it to what the handlers do.
//
//go:embed openapi.json
var openAPI []byte

func (a *api) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	setHeader(w, contentTypeJSON)
	w.Write(openAPI)
	return nil
}
