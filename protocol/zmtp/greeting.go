package zmtp

import (
	"bytes"
	"fmt"
)

// Offsets into the greeting; its layout is drawn in the package comment.
const (
	greetingSize    = 64
	signatureSize   = 10
	majorAt         = 10
	minorAt         = 11
	mechanismAt     = 12
	mechanismSize   = 20
	signatureFirst  = 0xFF
	signatureLast   = 0x7F
	majorVersion    = 3
	minorVersion    = 1
	mechanismOfOurs = "NULL"
)

// appendGreeting appends our greeting. The padding ends in 1, as libzmq's does:
// a peer of ZMTP 1.0 reads it as the length of a one-byte identity.
func appendGreeting(b []byte) []byte {
	var g [greetingSize]byte
	g[0], g[signatureSize-2], g[signatureSize-1] = signatureFirst, 1, signatureLast
	g[majorAt], g[minorAt] = majorVersion, minorVersion
	copy(g[mechanismAt:], mechanismOfOurs)
	return append(b, g[:]...)
}

// checkGreeting judges the first bytes of a peer, as many as are there: an old
// or foreign peer may never send 64. It returns nil while they can still become
// a greeting that we accept.
func checkGreeting(g []byte) error {
	if len(g) > 0 && g[0] != signatureFirst {
		return fmt.Errorf("%w: greeting starts with %#02x, want 0xff (ZMTP 1.0, or not ZMTP)", ErrProtocol, g[0])
	}
	if len(g) >= signatureSize && g[signatureSize-1] != signatureLast {
		return fmt.Errorf("%w: byte 9 of the greeting is %#02x, want 0x7f (ZMTP 1.0, or not ZMTP)", ErrProtocol, g[signatureSize-1])
	}
	if len(g) > majorAt && g[majorAt] < majorVersion {
		return fmt.Errorf("%w: peer speaks ZMTP 2.0 or older (revision %d), want 3.0 or newer", ErrProtocol, g[majorAt])
	}
	if len(g) < greetingSize {
		return nil
	}
	mechanism := g[mechanismAt : mechanismAt+mechanismSize]
	if name := bytes.TrimRight(mechanism, "\x00"); string(name) != mechanismOfOurs {
		return fmt.Errorf("%w: security mechanism is %q, want %q", ErrProtocol, name, mechanismOfOurs)
	}
	return nil
}

// hasCommandSubscriptions reports whether both ends, given the peer's greeting,
// subscribe by command (3.1) and not by message (3.0).
func hasCommandSubscriptions(g []byte) bool {
	return g[majorAt] > majorVersion || g[minorAt] >= 1
}
