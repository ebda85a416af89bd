package grpcd_test

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
)

func TestTLS(t *testing.T) {
	ours, theirs := servertest.NewAuthority(t), servertest.NewAuthority(t)
	cfg := serves(newIssuer())
	asked := access{cfg.Access, make(chan leaf.Credentials, 10)}
	cfg.Access = asked
	cfg.TLS = &tls.Config{
		Certificates: []tls.Certificate{ours.Server(t)},
		ClientCAs:    ours.Pool,
		ClientAuth:   tls.VerifyClientCertIfGiven,
	}
	s := start(t, cfg)
	for _, tt := range []struct {
		name  string
		certs []tls.Certificate
		want  string
	}{
		{"no certificate", nil, ""},
		{"common name", []tls.Certificate{ours.Client(t, "shop")}, "shop"},
		{"the first DNS name", []tls.Certificate{ours.Client(t, "shop", "shop.example", "b.example")}, "shop.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := &tls.Config{RootCAs: ours.Pool, Certificates: tt.certs}
			c := leafpb.NewLeafServiceClient(dial(t, s, grpc.WithTransportCredentials(credentials.NewTLS(config))))
			_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"})
			checkStatus(t, err, "unauthenticated") // by access, which asks for a token
			if got := <-asked.opened; got != (leaf.Credentials{Certificate: tt.want, Address: netip.MustParseAddr("127.0.0.1")}) {
				t.Errorf("opened with %+v, want the certificate %q", got, tt.want)
			}
		})
	}
	stranger := &tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{theirs.Client(t, "shop")}}
	for name, opt := range map[string]credentials.TransportCredentials{"a stranger's certificate": credentials.NewTLS(stranger), "plain": nil} {
		var opts []grpc.DialOption
		if opt != nil {
			opts = append(opts, grpc.WithTransportCredentials(opt))
		}
		c := leafpb.NewLeafServiceClient(dial(t, s, opts...))
		if _, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(asked.opened) > 0 {
		t.Errorf("a client without a handshake was asked about: %+v", <-asked.opened)
	}
}
