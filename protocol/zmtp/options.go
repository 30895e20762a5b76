package zmtp

import (
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultMaxMessage bounds one incoming message, in bytes.
	DefaultMaxMessage = 256 << 20
	// DefaultMaxFrames bounds the frames of one incoming message.
	DefaultMaxFrames = 4096
	// DefaultHandshakeTimeout bounds greeting and READY of one connection.
	DefaultHandshakeTimeout = 10 * time.Second

	// DefaultMaxBackoff is Options.MaxBackoff where that is 0.
	DefaultMaxBackoff = time.Second

	maxIdentity    = 255
	largestMaximum = 1 << 30 // of MaxMessage: sizes in memory stay far from overflow
)

// Options describes our end of a connection. Dial and Listen copy it; its
// Identity must not change afterwards.
type Options struct {
	// Type is our socket type. Required, except where a constructor sets it.
	Type SocketType

	// Identity is the routing id announced to the peer, at most 255 bytes.
	// Empty announces none.
	Identity []byte

	// MaxMessage bounds the bytes of one incoming message, all its frames
	// together. It is checked against the announced size, before any memory is
	// reserved. At most 1 GiB; 0 means DefaultMaxMessage.
	MaxMessage int64

	// MaxFrames bounds the frames of one incoming message. 0 means
	// DefaultMaxFrames.
	MaxFrames int

	// HighWater and LowWater are marks in bytes on the send queue. Once it has
	// held HighWater or more, OnLowWater is called when it falls below LowWater,
	// once for each such rise. Nothing is refused above HighWater. HighWater 0
	// switches the marks off; else 0 < LowWater <= HighWater.
	HighWater, LowWater int64

	// MaxQueued bounds the send queue in bytes, 0 = no bound. A message that does
	// not fit into it ends the connection, with ErrBehind.
	MaxQueued int64

	// OnLowWater runs on the connection's writer goroutine, which sends nothing
	// until it returns: Close waits for it. It must not close the connection.
	OnLowWater func()

	// HandshakeTimeout bounds the time from connect or accept to the peer's
	// READY. 0 means DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration

	// MaxBackoff bounds the pause between two attempts of Dial. 0 means
	// DefaultMaxBackoff.
	MaxBackoff time.Duration

	// OnReject tells a listening side of a connection whose handshake did not
	// complete. It runs on that handshake's goroutine, concurrently with others.
	OnReject func(err error)

	// OnLeave tells a RouterSocket or Puller of a connection that ended, and
	// why, after the last of its messages was received. It runs on that
	// connection's goroutine and isn't called for those that Close ends.
	// identity is that of RouterSocket.Recv, and what the peer announced in a
	// Puller; it must not be modified.
	OnLeave func(identity []byte, err error)
}

// withDefaults fills the zero values, or names every value out of its range.
func (o Options) withDefaults() (Options, error) {
	if err := o.validate(); err != nil {
		return o, err
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.MaxFrames == 0 {
		o.MaxFrames = DefaultMaxFrames
	}
	if o.HandshakeTimeout == 0 {
		o.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = DefaultMaxBackoff
	}
	return o, nil
}

func (o Options) validate() error {
	var errs []error
	if _, known := peersOf[o.Type]; !known {
		errs = append(errs, fmt.Errorf("socket type %q: want one of %s", o.Type, knownTypes()))
	}
	if len(o.Identity) > maxIdentity {
		errs = append(errs, fmt.Errorf("identity of %d bytes: want at most %d", len(o.Identity), maxIdentity))
	}
	if o.MaxMessage < 0 || o.MaxMessage > largestMaximum {
		errs = append(errs, fmt.Errorf("message limit %d: want 0 to %d", o.MaxMessage, largestMaximum))
	}
	if o.MaxFrames < 0 {
		errs = append(errs, fmt.Errorf("frame limit %d: want 0 or more", o.MaxFrames))
	}
	if o.HandshakeTimeout < 0 {
		errs = append(errs, fmt.Errorf("handshake time-out %v: want 0 or more", o.HandshakeTimeout))
	}
	if o.MaxBackoff < 0 {
		errs = append(errs, fmt.Errorf("back-off %v: want 0 or more", o.MaxBackoff))
	}
	if o.HighWater != 0 && (o.LowWater <= 0 || o.LowWater > o.HighWater) {
		errs = append(errs, fmt.Errorf("water marks: low %d, high %d: want 0 < low <= high", o.LowWater, o.HighWater))
	}
	if o.MaxQueued < 0 {
		errs = append(errs, fmt.Errorf("queue limit %d: want 0 or more", o.MaxQueued))
	}
	return errors.Join(errs...)
}
