// Package admin is the administrative interface of a node: plain HTTP with JSON
// on a Unix socket in the node's data directory, and on a TCP listener, by default on
// loopback. It can pass requests of gRPC on to the same Backend.
//
// It promises: (1) the socket is reachable by the node's own user only (mode
// 0600 in a 0700 directory) from the first moment on; (2) an error keeps its
// sentinel across the socket; (3) a request is bounded in size and time; (4) over TCP
// no web page can use it, and where a token is set every request needs it ([TCP]).
//
// On the socket it does not authenticate, because the file permissions do, and it does
// not decide anything: it translates between HTTP and the operations of package manage.
package admin
