package admin

import "net/http"

// HandlerOf returns what a server answers with.
func HandlerOf(s *Server) http.Handler { return s.http.Handler }
