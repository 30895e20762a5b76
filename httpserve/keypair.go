package httpserve

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"vllm-vcr/logs"
)

// KeyPair is a certificate and its private key in PEM files. The files are looked at with each handshake, and read again when
// they have changed, so that no restart and no timer is needed. While what they hold can't be used, the last good pair goes on.
type KeyPair struct {
	certFile, keyFile string

	mu   sync.Mutex
	pair *tls.Certificate
	seen [2]version // of the files when they were last read
	log  *logs.Logger
}

// version tells one content of a file from the next, also where the file was replaced.
type version struct {
	inode   uint64
	size    int64
	changed time.Time
}

// LoadKeyPair reads the pair. Without a keyFile the key is in certFile, as vLLM has it. The error names the file.
func LoadKeyPair(certFile, keyFile string) (*KeyPair, error) {
	p := &KeyPair{certFile: certFile, keyFile: cmp.Or(keyFile, certFile), log: logs.Nop()}
	p.seen = p.versions()
	pair, err := p.read(os.ReadFile) // of a pipe, too, which can be read once
	if err != nil {
		return nil, err
	}
	p.pair = pair
	return p, nil
}

// get is the certificate for a handshake.
func (p *KeyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there := p.versions(); there != p.seen {
		p.seen = there // before reading: what changes meanwhile is seen by the next handshake
		p.reload()
	}
	return p.pair, nil
}

// reload is called once for each change.
func (p *KeyPair) reload() {
	pair, err := p.read(readRegular)
	if err != nil {
		p.log.Error().Err(err).Msg("the changed certificate cannot be used, the one before it stays")
		return
	}
	p.pair = pair
	p.log.Info().Str("file", p.certFile).Time("expires", pair.Leaf.NotAfter).Msg("certificate changed")
}

func (p *KeyPair) versions() [2]version {
	return [2]version{versionOf(p.certFile), versionOf(p.keyFile)}
}

// versionOf a file that can't be looked at is the zero version.
func versionOf(path string) version {
	file, err := os.Stat(path)
	if err != nil {
		return version{}
	}
	v := version{size: file.Size(), changed: file.ModTime()}
	if stat, ok := file.Sys().(*syscall.Stat_t); ok {
		v.inode = stat.Ino
	}
	return v
}

// readRegular reads a file while handshakes wait: nothing that could keep them waiting is one.
func readRegular(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s is no regular file", path))
	}
	return io.ReadAll(f)
}

func (p *KeyPair) read(file func(string) ([]byte, error)) (*tls.Certificate, error) {
	certificate, err := file(p.certFile)
	if err != nil {
		return nil, err
	}
	key, err := file(p.keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", p.certFile, p.keyFile, err)
	}
	return &pair, nil
}
