package zmtp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SocketType is the Socket-Type property of READY. It decides which peers are
// compatible and which way messages travel.
type SocketType string

// The socket types this package plays itself. REQ and REP are known only as
// peers.
const (
	Dealer SocketType = "DEALER"
	Router SocketType = "ROUTER"
	Push   SocketType = "PUSH"
	Pull   SocketType = "PULL"
	Sub    SocketType = "SUB"
	XSub   SocketType = "XSUB"
	Pub    SocketType = "PUB"
	XPub   SocketType = "XPUB"
)

// peersOf lists, for each type of ours, the types it may meet (RFC 37, "Socket
// semantics").
var peersOf = map[SocketType][]SocketType{
	Dealer: {Router, Dealer, "REP"},
	Router: {Dealer, Router, "REQ"},
	Push:   {Pull},
	Pull:   {Push},
	Sub:    {Pub, XPub},
	XSub:   {Pub, XPub},
	Pub:    {Sub, XSub},
	XPub:   {Sub, XSub},
}

// checkPeer refuses a peer of a type that ours can't talk to.
func (t SocketType) checkPeer(peer SocketType) error {
	if slices.Contains(peersOf[t], peer) {
		return nil
	}
	return fmt.Errorf("%w: peer is %.16q, a %s socket wants one of %s", ErrProtocol, peer, t, join(peersOf[t]))
}

// sendOnly reports whether application messages never arrive at this type.
func (t SocketType) sendOnly() bool { return t == Push || t == Pub }

// publishes reports whether the peer chooses what is sent to it.
func (t SocketType) publishes() bool { return t == Pub || t == XPub }

// subscribes reports whether we choose what the peer sends.
func (t SocketType) subscribes() bool { return t == Sub || t == XSub }

func knownTypes() string { return join(slices.Sorted(maps.Keys(peersOf))) }

func join(types []SocketType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}
