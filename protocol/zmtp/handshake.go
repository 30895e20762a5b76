package zmtp

import (
	"fmt"
	"net"
)

// peer is what a handshake tells of the other end.
type peer struct {
	readyProperties
	commandSubscriptions bool
}

// handshake exchanges greetings and READY over nc. The caller sets deadlines.
// An incompatible peer is told so by an ERROR before the error is returned.
func handshake(nc net.Conn, r *reader, o *Options) (peer, error) {
	if _, err := nc.Write(appendGreeting(nil)); err != nil {
		return peer{}, fmt.Errorf("greeting: %w", err)
	}
	greeting, err := r.greeting()
	if err != nil {
		return peer{}, fmt.Errorf("greeting: %w", err)
	}
	p := peer{commandSubscriptions: hasCommandSubscriptions(greeting)}
	if _, err := nc.Write(appendReady(nil, o.Type, o.Identity)); err != nil {
		return peer{}, fmt.Errorf("ready: %w", err)
	}
	if p.readyProperties, err = r.ready(); err != nil {
		return peer{}, fmt.Errorf("ready: %w", err)
	}
	if err := o.Type.checkPeer(p.socketType); err != nil {
		reason := []byte("incompatible socket type")
		_, _ = nc.Write(appendCommand(nil, commandError, []byte{byte(len(reason))}, reason)) // a courtesy: the connection is given up anyway
		return peer{}, err
	}
	return p, nil
}

// greeting reads the peer's greeting, judging it as it arrives. The result is
// valid until the next read.
func (r *reader) greeting() ([]byte, error) {
	r.release()
	for _, n := range [...]int{1, signatureSize, majorAt + 1, greetingSize} {
		if err := r.fill(n); err != nil {
			return nil, err
		}
		if err := checkGreeting(r.buf[r.start : r.start+n]); err != nil {
			return nil, err
		}
	}
	r.pos = greetingSize
	return r.buf[r.start : r.start+greetingSize], nil
}

// ready reads the peer's READY, which must be the first frame.
func (r *reader) ready() (readyProperties, error) {
	r.release()
	h, err := r.header(0)
	if err != nil {
		return readyProperties{}, err
	}
	if !h.command() {
		return readyProperties{}, fmt.Errorf("%w: message before READY", ErrProtocol)
	}
	from := r.pos
	if err := r.fill(from + int(h.size)); err != nil {
		return readyProperties{}, err
	}
	r.pos += int(h.size)
	name, data, err := parseCommand(r.buf[r.start+from : r.start+r.pos])
	if err != nil {
		return readyProperties{}, err
	}
	switch string(name) {
	case commandReady:
		return parseReady(data)
	case commandError:
		return readyProperties{}, parseError(data)
	}
	return readyProperties{}, fmt.Errorf("%w: command %.16q, want READY", ErrProtocol, name)
}
