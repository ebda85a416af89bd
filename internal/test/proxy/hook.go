package proxy

import "sync"

// Action is what a hook wants done with the bytes that it was shown.
type Action int

// The actions.
const (
	Pass     Action = iota // forward them
	Drop                   // forget them, and go on
	CutNow                 // forget them, and reset the connection
	CutReply               // forward them, and reset the connection when the server answers
)

// Hook looks at the bytes that one side has sent, before they are forwarded. It
// is called by several goroutines at once and must neither keep nor change data.
type Hook func(from Side, data []byte) Action

// SetHook replaces the hook; nil removes it.
func (p *Proxy) SetHook(h Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = h
}

// CutReplyAfter waits for the first bytes from a client that match, forwards
// them, and resets that connection when the server answers: the server has done
// what it was asked for, and the client cannot know. It happens once and
// replaces the hook. The channel is closed when match has returned true.
//
//	proxy.CutReplyAfter(func(b []byte) bool { return bytes.Contains(b, []byte("COMMIT")) })
func (p *Proxy) CutReplyAfter(match func(data []byte) bool) (matched <-chan struct{}) {
	var mu sync.Mutex
	done := make(chan struct{})
	fired := false
	p.SetHook(func(from Side, data []byte) Action {
		if from != Client {
			return Pass
		}
		mu.Lock()
		defer mu.Unlock()
		if fired || !match(data) {
			return Pass
		}
		fired = true
		close(done)
		return CutReply
	})
	return done
}

func (l *link) setCutReply() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutReply = true
}

func (l *link) replyIsCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cutReply
}
