package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// line is one connection to a node, with one request under way at most. It connects when
// it is first asked, and again after it broke.
type line interface {
	// ask asks for one ID and waits for the answer until the deadline.
	ask(tag string, deadline time.Time) reply
	close()
}

// reply is what became of a request.
type reply struct {
	what what
	id   int64         // of issued
	hint time.Duration // of rejected: when to try again; 0: it does not say
	text string        // of failed and broken: why
}

// what is the kind of a reply.
type what int

const (
	issued   what = iota // an ID
	rejected             // rejected at once: too many wait
	failed               // waited, and was told that there is none
	late                 // waited, and heard nothing before the deadline
	broken               // something else is wrong: the connection, the answer
)

// tcpLine is a line of a protocol whose requests and replies follow each other on one
// TCP connection. Its user writes requests itself: on two cores the load may not cost
// more than what it measures.
type tcpLine struct {
	addr    string
	request func(into []byte, tag string) []byte
	answer  func(in *bufio.Reader) (reply, error)

	conn net.Conn // nil while there is none
	in   *bufio.Reader
	out  []byte
}

func (l *tcpLine) ask(tag string, deadline time.Time) reply {
	r, err := l.attempt(tag, deadline)
	if err == nil {
		return r
	}
	l.close() // a late answer may not be taken for that to another question
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return reply{what: late}
	}
	return reply{what: broken, text: err.Error()}
}

func (l *tcpLine) attempt(tag string, deadline time.Time) (reply, error) {
	if l.conn == nil {
		d := net.Dialer{Deadline: deadline}
		conn, err := d.Dial("tcp", l.addr)
		if err != nil {
			return reply{}, err
		}
		l.conn, l.in = conn, bufio.NewReader(conn)
	}
	if err := l.conn.SetDeadline(deadline); err != nil {
		return reply{}, err
	}
	l.out = l.request(l.out[:0], tag)
	if _, err := l.conn.Write(l.out); err != nil {
		return reply{}, err
	}
	return l.answer(l.in)
}

func (l *tcpLine) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}
