// Package certtest makes certificates for the tests of whatever serves TLS. Nothing else may import it.
package certtest

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
)

// Pair is a certificate for 127.0.0.1 and localhost that signs itself, and its key, in the files of a folder of their own.
type Pair struct {
	CertFile, KeyFile string
	// Roots trust the certificates written so far.
	Roots *x509.CertPool
}

// New makes a pair in whose certificate name is the subject.
func New(t testing.TB, name string) *Pair {
	t.Helper()
	folder := t.TempDir()
	p := &Pair{CertFile: filepath.Join(folder, "cert.pem"), KeyFile: filepath.Join(folder, "key.pem"), Roots: x509.NewCertPool()}
	p.Renew(t, name)
	return p
}

// Renew replaces both files, each at once: first the key, so that for a moment they don't belong together.
func (p *Pair) Renew(t testing.TB, name string) {
	t.Helper()
	cert, key := generate(t, name)
	p.Roots.AppendCertsFromPEM(cert)
	Replace(t, p.KeyFile, key)
	Replace(t, p.CertFile, cert)
}

// Replace puts a new file in the place of path's.
func Replace(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func generate(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}
