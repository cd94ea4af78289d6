package schematest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

// Authority signs certificates for one test and is trusted by nobody else.
type Authority struct {
	t    testing.TB
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// CertificateOptions say what a certificate is good for. The zero value is one for
// 127.0.0.1 that is valid for an hour.
type CertificateOptions struct {
	// Names are DNS names; given any, the certificate is for them alone.
	Names []string
	// Expired makes it one that ran out a minute ago.
	Expired bool
}

// NewAuthority makes one with a key of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of a test"}, SerialNumber: big.NewInt(1),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a.key = a.newKey()
	a.cert = a.sign(template, template, a.key)
	return a
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() []byte { return asPEM("CERTIFICATE", a.cert.Raw) }

// File is a file with PEM, for a client that is to trust the authority.
func (a *Authority) File() string {
	a.t.Helper()
	return a.write("authority.pem", a.PEM())
}

// Issue makes a certificate with its key, for a server or for a client.
func (a *Authority) Issue(o CertificateOptions) devstack.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatalf("choose a serial number: %v", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test"}, SerialNumber: serial, DNSNames: o.Names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(o.Names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if o.Expired {
		template.NotAfter = time.Now().Add(-time.Minute)
	}
	key := a.newKey()
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatalf("write a test's key: %v", err)
	}
	return devstack.Certificate{Chain: asPEM("CERTIFICATE", a.sign(template, a.cert, key).Raw), Key: asPEM("PRIVATE KEY", secret)}
}

// Files are a certificate and its key as files.
func (a *Authority) Files(c devstack.Certificate) (chain, key string) {
	a.t.Helper()
	return a.write("cert.pem", c.Chain), a.write("key.pem", c.Key)
}

// sign makes the certificate of key, which parent signs with the authority's key.
func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatalf("sign a test's certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatalf("read a test's certificate: %v", err)
	}
	return cert
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatalf("make a test's key: %v", err)
	}
	return key
}

func (a *Authority) write(name string, text []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatalf("write %s: %v", name, err)
	}
	return path
}

func asPEM(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

// TLSNATSServer is a NATS server of the test's own that takes TLS connections only.
func TLSNATSServer(t testing.TB, c devstack.Certificate) *devstack.NATS {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	started, err := devstack.StartNATS(ctx, devstack.NATSOptions{TLS: c, Log: Logger(t)})
	if err != nil {
		t.Fatalf("no NATS for the test: %v", err)
	}
	t.Cleanup(func() { stop(t, started) })
	return started
}

// TLSRedisServer is a RedisServer that takes TLS connections only.
func TLSRedisServer(t testing.TB, c devstack.Certificate) *devstack.Redis {
	t.Helper()
	return privateRedis(t, devstack.RedisOptions{TLS: c})
}

// TLSPostgresServer is a cluster of the test's own with an empty database, not migrated,
// that offers TLS and takes plain connections too.
func TLSPostgresServer(t testing.TB, c devstack.Certificate) *devstack.Postgres {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	started, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{TLS: c})
	if err != nil {
		t.Fatalf("no PostgreSQL for the test: %v", err)
	}
	t.Cleanup(func() { stop(t, started) })
	return started
}
