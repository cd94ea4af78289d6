package devstack

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// passwordPrefix begins every password made here, so that one that shows up where it
// must not can be told from other text.
const passwordPrefix = "devstack-secret-"

func newPassword() string { return passwordPrefix + rand.Text() }

// Certificate makes a server speak TLS. The zero value is a server that does not.
type Certificate struct {
	// Chain and Key are what the server shows and proves, as PEM.
	Chain, Key []byte
	// Clients is the authority, as PEM, whose certificate every client must show;
	// empty asks for none.
	Clients []byte
}

func (c Certificate) on() bool { return len(c.Chain) > 0 }

// config is what a server inside this process uses; nil without a certificate.
func (c Certificate) config() (*tls.Config, error) {
	if !c.on() {
		return nil, nil //nolint:nilnil // no certificate is no fault
	}
	pair, err := tls.X509KeyPair(c.Chain, c.Key)
	if err != nil {
		return nil, fmt.Errorf("read the server's certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if len(c.Clients) > 0 {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(c.Clients) {
			return nil, errors.New("read the clients' authority: no certificate in it")
		}
	}
	return config, nil
}

// move writes the certificate where a server of its own process reads it.
func (c Certificate) move(h *home) error {
	if !c.on() {
		return nil
	}
	return errors.Join(h.write(certificateFile, string(c.Chain)), h.write(keyFile, string(c.Key)))
}

// Names inside a home.
const (
	certificateFile = "server.crt"
	keyFile         = "server.key"
)
