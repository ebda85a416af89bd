// Package admin is the administrative interface of a node, HTTP with JSON, and its client:
// on a Unix socket in the node's data directory, and on a TCP listener, in plain HTTP on
// loopback or over TLS.
//
// It promises: (1) the socket is reachable by the node's own user only (mode
// 0600 in a 0700 directory) from the first moment on; (2) an error keeps its
// sentinel across the socket; (3) a request is bounded in size and time; (4) over TCP
// every administrative request needs a token, or the session of a browser that has shown one
// to the node's own page, so no other web page can use it ([TCP]); (5) a client sends its
// token over TLS or to loopback, to the host that it was given, and to no other
// ([Endpoint]).
//
// On the socket it does not authenticate, because the file permissions do, and it does
// not decide anything: it translates between HTTP and the operations of package manage.
package admin
