package zmtp

import "errors"

var (
	// ErrClosed is the end of a Conn, Listener, RouterSocket or Puller that its
	// own user closed.
	ErrClosed = errors.New("closed")

	// ErrProtocol is wrapped by every error that a peer caused by what it sent:
	// a broken greeting or frame, an exceeded limit, an incompatible socket type,
	// an ERROR command. Dialling the same peer again would meet it again.
	ErrProtocol = errors.New("protocol error")

	// ErrBehind ends a connection whose peer reads so slowly that a message has no
	// room in the send queue, see Options.MaxQueued.
	ErrBehind = errors.New("the peer does not read what it is sent")

	// ErrReplaced ends a connection of a RouterSocket whose identity a newer
	// connection announced.
	ErrReplaced = errors.New("replaced by a newer connection with the same identity")

	// ErrUnknownPeer is returned by RouterSocket.Send for an identity that is
	// not connected.
	ErrUnknownPeer = errors.New("unknown peer")
)
