package leaf

import "net/netip"

// Credentials are what a client shows of itself, on a connection or with a request.
// The zero value is a client that shows nothing.
type Credentials struct {
	Token       string // the secret, e.g. of "Authorization: Bearer" or AUTH; "" if none
	Certificate string // the name in its certificate, verified by TLS; "" if none
	Name        string // what it calls itself, unproved; "" if it does not

	Address netip.Addr // where its connection comes from; zero: not known
	Request string     // the ID of the request that Open is called for, for the log only; "": none
}

// Access is the one layer of authorisation and limits in front of every protocol. A
// server asks it for the issuers of a client and gives IDs from nothing else, so what
// one protocol forbids no other one allows.
type Access interface {
	// Open returns the issuers for a client. A server may keep them as long as the
	// client's credentials stay the same, for a connection or for one request: limits
	// that change meanwhile count at once. It returns at once and is safe for
	// concurrent use. Errors: ErrUnauthenticated; ErrBadRequest for a Name that cannot be
	// a client's.
	Open(c Credentials) (*Issuers, error)

	// Guarded reports whether a client must show a token. Unlike an Open without one it is no
	// request that was refused.
	Guarded() bool
}

// Issuers is one Issuer per mode, none of them nil; that of a mode which is switched off
// is [Disabled].
type Issuers struct {
	Segment   Issuer
	Snowflake Issuer

	// Sequence gives numbers of sequences, which segment mode keeps. nil: there are none.
	Sequence Sequencer
}

// Sequencer returns Sequence, or what refuses every call.
func (i *Issuers) Sequencer() Sequencer {
	if i.Sequence == nil {
		return DisabledSequence(SegmentMode)
	}
	return i.Sequence
}

// Anyone is the Access that gives the same issuers to every client, without limits. A nil
// Issuer stands for a mode that is switched off.
func Anyone(segment, snowflake Issuer) Access {
	if segment == nil {
		segment = Disabled("segment")
	}
	if snowflake == nil {
		snowflake = Disabled("snowflake")
	}
	return anyone{Issuers{Segment: segment, Snowflake: snowflake}}
}

type anyone struct{ issuers Issuers }

func (a anyone) Open(Credentials) (*Issuers, error) { return &a.issuers, nil }
func (a anyone) Guarded() bool                      { return false }
