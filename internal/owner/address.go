package owner

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/leaf-idgen/leaf"
)

// ofOneMachine reports whether an address leads each machine to itself.
func ofOneMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// sharedSubject is the subject of the alarm that another node has the address of this one: the key with the address.
const sharedSubject = "node.advertise"

// shared is what is known of another node with the address of this one.
type shared struct {
	since time.Time // when its session was first seen; zero: there is none
	told  bool      // the alarm is raised
}

// tellShared raises the alarm that another node has the address of this one, and clears it. The session of a process
// that crashed at this address has ended by the time at which the alarm would begin.
func (s *Slots) tellShared(now time.Time) {
	found := false
	for nonce, r := range s.view.sessions {
		own := s.session != nil && s.session.Nonce == nonce || s.past[nonce]
		found = found || !r.Released && !own && r.Address == s.cfg.Address
	}
	switch {
	case !found:
		if s.shared.told {
			s.cfg.Alarms.Clear(leaf.AlarmConfiguration, sharedSubject)
		}
		s.shared = shared{}
	case s.shared.since.IsZero():
		s.shared.since = now
	case !s.shared.told && now.Sub(s.shared.since) > 2*(s.longest+margin(s.longest)):
		s.shared.told = true
		s.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmConfiguration, Subject: sharedSubject,
			Text: fmt.Sprintf("another node has the same address as this one, %s; requests for tags in strict order fail where one of the two takes them to the other, or another node reaches the wrong one", s.cfg.Address),
			Do:   "give each node a name or IP address of its own in node.advertise, and let its grpc.addr listen there",
		})
	}
}
