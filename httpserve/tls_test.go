package httpserve

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/httpserve/certtest"
	"vllm-vcr/logs"
)

// secure is a listener under a pair, and what its log says.
type secure struct {
	net.Listener
	pair *certtest.Pair
	out  bytes.Buffer
	root *logs.Root
}

func listenSecure(t *testing.T) *secure {
	t.Helper()
	s := &secure{pair: certtest.New(t, "first")}
	pair, err := LoadKeyPair(s.pair.CertFile, s.pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := logs.ParseFilter("info")
	if err != nil {
		t.Fatal(err)
	}
	s.root = logs.New(&s.out, logs.JSON, filter)
	t.Cleanup(func() { _ = s.root.Close() }) // log may have
	s.Listener = pair.Over(listen(t), s.root.Target(logs.Control))
	return s
}

// log ends the log and returns it.
func (s *secure) log(t *testing.T) string {
	t.Helper()
	if err := s.root.Close(); err != nil {
		t.Fatal(err)
	}
	return s.out.String()
}

// connect makes a handshake, as a client that keeps sessions would.
func (s *secure) connect(t *testing.T, at net.Addr, change ...func(*tls.Config)) (*tls.Conn, error) {
	t.Helper()
	c := &tls.Config{RootCAs: s.pair.Roots, ServerName: "localhost", ClientSessionCache: sessions}
	for _, f := range change {
		f(c)
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", at.String(), c)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have
	return conn, conn.SetDeadline(time.Now().Add(30 * time.Second))
}

var sessions = tls.NewLRUClientSessionCache(8)

// subject is the name in the certificate that the server shows, once it has answered a call.
func (s *secure) subject(t *testing.T, at net.Addr) string {
	t.Helper()
	conn, err := s.connect(t, at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, get); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, conn, 200)
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestTLS_Versions(t *testing.T) {
	ln := listenSecure(t)
	s := start(t, ln, Limits{Open: 9}, hello)
	for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		_, err := ln.connect(t, s.addr, func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version })
		if (err == nil) != ok {
			t.Errorf("%s: %v, want it to be taken: %v", tls.VersionName(version), err, ok)
		}
	}
	conn, err := ln.connect(t, s.addr, func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} })
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol = %q, want http/1.1", got)
	}
}

// TestTLS_Reload replaces the files, and has them broken in between: each handshake has the last good pair, and what can't be used is
// told once.
func TestTLS_Reload(t *testing.T) {
	ln := listenSecure(t)
	s := start(t, ln, Limits{Open: 99}, hello)
	before, err := ln.connect(t, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	wantSubject := func(want string) {
		t.Helper()
		for range 3 {
			if got := ln.subject(t, s.addr); got != want {
				t.Errorf("certificate of %q, want %q", got, want)
			}
		}
	}
	wantSubject("first")
	ln.pair.Renew(t, "second")
	wantSubject("second")
	certtest.Replace(t, ln.pair.CertFile, []byte("rubbish"))
	wantSubject("second")
	if err := os.Remove(ln.pair.KeyFile); err != nil {
		t.Fatal(err)
	}
	wantSubject("second")
	if err := syscall.Mkfifo(ln.pair.KeyFile, 0o600); err != nil { // whoever opens it to read waits for a writer
		t.Fatal(err)
	}
	wantSubject("second")
	ln.pair.Renew(t, "third")
	wantSubject("third")
	if _, err := io.WriteString(before, get); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, before, 200)
	log := ln.log(t)
	for text, want := range map[string]int{"certificate changed": 2, "cannot be used": 3, "failed to find any PEM data": 1, "no such file": 1, "is no regular file": 1} {
		if got := strings.Count(log, text); got != want {
			t.Errorf("%d lines with %q, want %d:\n%s", got, text, want, log)
		}
	}
}

// TestTLS_Slow has clients that never end their handshake: others are served meanwhile.
func TestTLS_Slow(t *testing.T) {
	ln := listenSecure(t)
	s := start(t, ln, Limits{Open: 99}, hello)
	for _, text := range []string{"", "\x16\x03\x01", "\x16\x03\x01\x02\x00\x01"} {
		for range 10 {
			s.dial(text)
		}
	}
	begun := time.Now()
	ln.subject(t, s.addr)
	if took := time.Since(begun); took > handshakeTimeout/2 {
		t.Errorf("took %v beside clients that are slow", took)
	}
}

// TestTLS_TooSlow waits for the end of such a client.
func TestTLS_TooSlow(t *testing.T) {
	ln := listenSecure(t)
	ln.Listener.(*secureListener).patience = 100 * time.Millisecond
	s := start(t, ln, Limits{Open: 99}, hello)
	begun := time.Now()
	wantEnd(t, s.dial("\x16\x03\x01"))
	if took := time.Since(begun); took < 100*time.Millisecond || took > 5*time.Second {
		t.Errorf("ended after %v, want about 100ms", took)
	}
}

func TestTLS_NotTLS(t *testing.T) {
	ln := listenSecure(t)
	s := start(t, ln, Limits{Open: 99}, hello)
	for text, want := range map[string]string{
		get:                 "HTTP/1.1 400 ",
		"rubbish, no TLS\n": "",
		"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff": "\x15", // an alert
	} {
		got, _ := io.ReadAll(s.dial(text)) // it may be reset
		if !strings.HasPrefix(string(got), want) || want == "" && strings.Contains(string(got), "HTTP") {
			t.Errorf("%q: answer %q, want %q", text, got, want)
		}
	}
	ln.subject(t, s.addr)
}

func TestLoadKeyPair_Bad(t *testing.T) {
	good, other := certtest.New(t, "good"), certtest.New(t, "other")
	rubbish := filepath.Join(t.TempDir(), "rubbish")
	if err := os.WriteFile(rubbish, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ cert, key, says string }{
		"no certificate":      {rubbish + "1", good.KeyFile, "open " + rubbish + "1: no such file"},
		"no key":              {good.CertFile, rubbish + "1", "open " + rubbish + "1: no such file"},
		"a folder":            {filepath.Dir(rubbish), good.KeyFile, "is a directory"},
		"rubbish certificate": {rubbish, good.KeyFile, "certificate " + rubbish + " with key " + good.KeyFile + ": tls: failed to find any PEM data in certificate"},
		"rubbish key":         {good.CertFile, rubbish, "failed to find any PEM data in key"},
		"the other way round": {good.KeyFile, good.CertFile, "tls: failed to find certificate PEM data in certificate input, but did find a private key"},
		"another's key":       {good.CertFile, other.KeyFile, "private key does not match public key"},
		"no key in the file":  {good.CertFile, "", "certificate " + good.CertFile + " with key " + good.CertFile},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := LoadKeyPair(tt.cert, tt.key); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q in it", err, tt.says)
			}
		})
	}
}

func TestLoadKeyPair_OneFile(t *testing.T) {
	pair := certtest.New(t, "one")
	var both []byte
	for _, path := range []string{pair.CertFile, pair.KeyFile} {
		part, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, part...)
	}
	certtest.Replace(t, pair.CertFile, both)
	got, err := LoadKeyPair(pair.CertFile, "")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := got.get(nil); err != nil || c.Leaf.Subject.CommonName != "one" {
		t.Errorf("certificate %v, %v", c, err)
	}
}
