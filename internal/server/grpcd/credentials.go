package grpcd

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// credentialsOf returns what the client of a call shows of itself: the certificate of
// its connection, and of the call's metadata "authorization: Bearer TOKEN" and
// "leaf-client". What is there twice is refused, because a proxy before us may have
// looked at the other one. A scheme other than Bearer is ignored: it is
// meant for a proxy.
func credentialsOf(ctx context.Context) (c leaf.Credentials, err error) {
	if id := identityOf(ctx); id != nil {
		c.Certificate = id.certificate
		c.Address = accept.Address(id.link)
	}
	if c.Token, err = auth.Bearer(metadata.ValueFromIncomingContext(ctx, "authorization")); err != nil {
		return c, err
	}
	c.Request = requestid.ID(ctx)
	c.Name, err = auth.Single("leaf-client", metadata.ValueFromIncomingContext(ctx, "leaf-client"))
	return c, err
}

// requestID returns the ID that a call brings in its metadata. A call that brings none gets one if
// needed, otherwise it is "".
func requestID(ctx context.Context, needed bool) string {
	value := func(name string) string { return requestid.Single(metadata.ValueFromIncomingContext(ctx, name)) }
	id := requestid.Of(value(requestid.Metadata), value(requestid.TraceMetadata))
	if id == "" && needed {
		return requestid.New()
	}
	return id
}

// identity is what the server knows about a connection. It is how a call finds its own.
type identity struct {
	credentials.AuthInfo
	link        *accept.Conn
	certificate string // the name in the verified certificate
}

// identityOf returns the identity of a call's connection, nil behind another transport.
func identityOf(ctx context.Context) *identity {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	id, _ := p.AuthInfo.(*identity)
	return id
}

// handshaker gives every connection its identity. Its connections come from
// an accept.Listener.
type handshaker struct {
	credentials.TransportCredentials
}

func newHandshaker(config *tls.Config) handshaker {
	if config == nil {
		return handshaker{insecure.NewCredentials()}
	}
	return handshaker{credentials.NewTLS(config)}
}

// ServerHandshake implements credentials.TransportCredentials.
func (h handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	id := &identity{AuthInfo: info, link: raw.(*accept.Conn)}
	if secure, ok := info.(credentials.TLSInfo); ok {
		id.certificate = accept.ClientName(secure.State)
	}
	return conn, id, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshaker) Clone() credentials.TransportCredentials {
	return handshaker{h.TransportCredentials.Clone()}
}
