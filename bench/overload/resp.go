package main

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func connectRESP(addr string) (dial func() line, disconnect func(), err error) {
	request := func(into []byte, tag string) []byte {
		return fmt.Appendf(into, "*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n", len(tag), tag)
	}
	return func() line { return &tcpLine{addr: addr, request: request, answer: answerRESP} }, func() {}, nil
}

// answerRESP reads one reply to INCR.
func answerRESP(in *bufio.Reader) (reply, error) {
	text, err := in.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	text = strings.TrimSuffix(text, "\r\n")
	if digits, ok := strings.CutPrefix(text, ":"); ok {
		id, err := strconv.ParseInt(digits, 10, 64)
		return reply{what: issued, id: id}, err
	}
	switch class, _, _ := strings.Cut(text, " "); class {
	case "-EXHAUSTED":
		_, after, _ := strings.Cut(text, "retry after ")
		if hint, err := time.ParseDuration(after); err == nil {
			return reply{what: rejected, hint: hint}, nil
		}
		return reply{what: failed, text: text}, nil // it waited in vain
	case "-NOTREADY":
		return reply{what: failed, text: text}, nil
	}
	return reply{}, errors.New(text)
}
