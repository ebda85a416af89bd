package accept

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
)

// ClientName returns what a client's certificate, verified in the handshake, is about:
// its first DNS name, else its common name, else "sha256:" and the certificate's
// fingerprint, so that a certificate without a name never leaves the choice of one to the
// client. It is "" without such a certificate.
func ClientName(state tls.ConnectionState) string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	cert := state.VerifiedChains[0][0]
	if len(cert.DNSNames) > 0 && cert.DNSNames[0] != "" {
		return cert.DNSNames[0]
	}
	if cert.Subject.CommonName != "" {
		return cert.Subject.CommonName
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(cert.Raw))
}
