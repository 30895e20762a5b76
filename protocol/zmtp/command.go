package zmtp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	commandReady     = "READY"
	commandError     = "ERROR"
	commandPing      = "PING"
	commandPong      = "PONG"
	commandSubscribe = "SUBSCRIBE"
	commandCancel    = "CANCEL"

	propertyType     = "Socket-Type"
	propertyIdentity = "Identity"

	maxCommand = 64 << 10 // bytes of one incoming command
	maxContext = 16       // bytes of a PING's context
	ttlSize    = 2

	messageSubscribe = 0x01 // first byte of a subscription sent as a message
	messageCancel    = 0x00
)

// appendCommand appends a whole command frame; its data is the join of parts.
func appendCommand(b []byte, name string, parts ...[]byte) []byte {
	size := 1 + len(name)
	for _, p := range parts {
		size += len(p)
	}
	b = appendHeader(b, flagCommand, size)
	b = append(b, byte(len(name)))
	b = append(b, name...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// parseCommand splits the body of a command frame. Both results alias it.
func parseCommand(body []byte) (name, data []byte, err error) {
	if len(body) == 0 {
		return nil, nil, fmt.Errorf("%w: empty command", ErrProtocol)
	}
	n := int(body[0])
	if n == 0 || n > len(body)-1 {
		return nil, nil, fmt.Errorf("%w: command name of %d bytes in a command of %d", ErrProtocol, n, len(body))
	}
	return body[1 : 1+n], body[1+n:], nil
}

// appendReady appends our READY frame.
func appendReady(b []byte, t SocketType, identity []byte) []byte {
	properties := appendProperty(nil, propertyType, []byte(t))
	if len(identity) > 0 {
		properties = appendProperty(properties, propertyIdentity, identity)
	}
	return appendCommand(b, commandReady, properties)
}

func appendProperty(b []byte, name string, value []byte) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// readyProperties are the properties of READY that mean something to us.
type readyProperties struct {
	socketType SocketType
	identity   []byte
}

// parseReady decodes the data of a READY. Property names are compared without
// regard to case and unknown ones are skipped. Nothing in the result aliases b.
func parseReady(b []byte) (readyProperties, error) {
	var p readyProperties
	for len(b) > 0 {
		name, value, rest, err := parseProperty(b)
		if err != nil {
			return p, err
		}
		switch {
		case strings.EqualFold(string(name), propertyType):
			p.socketType = SocketType(value)
		case strings.EqualFold(string(name), propertyIdentity):
			p.identity = bytes.Clone(value)
		}
		b = rest
	}
	if p.socketType == "" {
		return p, fmt.Errorf("%w: READY without %s", ErrProtocol, propertyType)
	}
	if len(p.identity) > maxIdentity {
		return p, fmt.Errorf("%w: identity of %d bytes, want at most %d", ErrProtocol, len(p.identity), maxIdentity)
	}
	return p, nil
}

func parseProperty(b []byte) (name, value, rest []byte, err error) {
	n := int(b[0])
	if len(b) < 1+n+4 {
		return nil, nil, nil, fmt.Errorf("%w: READY: property name of %d bytes and its value size in %d bytes", ErrProtocol, n, len(b)-1)
	}
	name, b = b[1:1+n], b[1+n:]
	size := uint64(binary.BigEndian.Uint32(b))
	b = b[4:]
	if size > uint64(len(b)) {
		return nil, nil, nil, fmt.Errorf("%w: READY: value of %.16q claims %d bytes, %d are left", ErrProtocol, name, size, len(b))
	}
	return name, b[:size], b[size:], nil
}

// parseError turns the data of an ERROR into an error with the peer's reason.
// A reason that is cut short is shown as far as it goes.
func parseError(data []byte) error {
	reason := data
	if len(data) > 0 {
		reason = data[1:min(len(data), 1+int(data[0]))]
	}
	return fmt.Errorf("%w: peer sent ERROR %q", ErrProtocol, reason)
}

// parsePing returns the context of a PING, which aliases data.
func parsePing(data []byte) (context []byte, err error) {
	if len(data) < ttlSize || len(data) > ttlSize+maxContext {
		return nil, fmt.Errorf("%w: PING of %d bytes, want %d to %d", ErrProtocol, len(data), ttlSize, ttlSize+maxContext)
	}
	return data[ttlSize:], nil
}
