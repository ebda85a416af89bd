package accept

import "crypto/tls"

// ClientName returns what a client's certificate, verified in the handshake, is about:
// its first DNS name, else its common name. It is "" without such a certificate.
func ClientName(state tls.ConnectionState) string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	cert := state.VerifiedChains[0][0]
	if len(cert.DNSNames) > 0 {
		return cert.DNSNames[0]
	}
	return cert.Subject.CommonName
}
