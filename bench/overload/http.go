package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

func connectHTTP(addr string) (dial func() line, disconnect func(), err error) {
	request := func(into []byte, tag string) []byte {
		return fmt.Appendf(into, "GET /api/segment/get/%s HTTP/1.1\r\nHost: %s\r\n\r\n", tag, addr)
	}
	return func() line { return &tcpLine{addr: addr, request: request, answer: answerHTTP} }, func() {}, nil
}

// answerHTTP reads one reply.
func answerHTTP(in *bufio.Reader) (reply, error) {
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	if resp.StatusCode == http.StatusOK {
		id, err := strconv.ParseInt(string(body), 10, 64)
		return reply{what: issued, id: id}, err
	}
	var problem struct {
		Code       string `json:"code"`
		Detail     string `json:"detail"`
		RetryAfter int64  `json:"retry_after_ms"`
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return reply{}, fmt.Errorf("status %d with %q: %w", resp.StatusCode, body, err)
	}
	switch problem.Code {
	case "exhausted":
		if problem.RetryAfter == 0 { // it waited in vain
			return reply{what: failed, text: problem.Detail}, nil
		}
		return reply{what: rejected, hint: time.Duration(problem.RetryAfter) * time.Millisecond}, nil
	case "not_ready":
		return reply{what: failed, text: problem.Detail}, nil
	}
	return reply{}, fmt.Errorf("status %d: %s", resp.StatusCode, problem.Detail)
}
