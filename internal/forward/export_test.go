package forward

import "time"

// Age lets time pass for p.
func (p *Peers) Age(d time.Duration) { p.began = p.began.Add(-d) }

// Connections returns how many connections there are.
func (p *Peers) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
