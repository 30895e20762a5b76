package httpserve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"vllm-vcr/logs"
)

// handshakeTimeout is what a client has for its part of a handshake.
const handshakeTimeout = 10 * time.Second

// Over is ln with TLS 1.2 or 1.3 over each connection, under this certificate. Changes of the certificate are told in log. The
// handshake is made by the goroutine that serves the connection, within 10 s: it delays no other.
func (p *KeyPair) Over(ln net.Listener, log *logs.Logger) net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = log
	return &secureListener{ln, handshakeTimeout, &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"http/1.1"},
		GetCertificate:         p.get,
		SessionTicketsDisabled: true, // a resumed session would go on under the certificate that it began with
	}}
}

type secureListener struct {
	net.Listener
	patience time.Duration // with a handshake
	config   *tls.Config
}

// Accept implements net.Listener.
func (l *secureListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &secureConn{tls.Server(conn, l.config), l.patience}, nil
}

// secureConn is a connection whose handshake ends in time. fasthttp calls it before it reads.
type secureConn struct {
	*tls.Conn
	patience time.Duration
}

// Handshake replaces that of tls.Conn.
func (c *secureConn) Handshake() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	err := c.HandshakeContext(ctx)
	if strange := (tls.RecordHeaderError{}); errors.As(err, &strange) && strange.Conn != nil && isMethod(strange.RecordHeader[:]) {
		discard(strange.Conn)
		_, _ = io.WriteString(strange.Conn, plainAnswer) // the connection is given up anyway
	}
	return err
}

const plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis port speaks TLS only: https://\n"

// isMethod says whether the first five bytes of a connection begin a request without TLS.
func isMethod(head []byte) bool {
	return slices.Contains([]string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO"}, string(head))
}
