package zmtp

import (
	"encoding/binary"
	"fmt"
)

const (
	flagMore    = 0x01
	flagLong    = 0x02
	flagCommand = 0x04
	knownFlags  = flagMore | flagLong | flagCommand

	maxShort      = 255 // the largest size that fits one byte
	maxHeaderSize = 9
)

// header is what precedes the body of a frame.
type header struct {
	flags byte
	size  uint64 // of the body
}

func (h header) more() bool    { return h.flags&flagMore != 0 }
func (h header) command() bool { return h.flags&flagCommand != 0 }

// headerSize is the number of bytes of a header that starts with flags.
func headerSize(flags byte) int {
	if flags&flagLong != 0 {
		return maxHeaderSize
	}
	return 2
}

// parseHeader decodes a header of headerSize(b[0]) bytes.
func parseHeader(b []byte) (header, error) {
	h := header{flags: b[0]}
	if h.flags&^knownFlags != 0 || h.flags&(flagCommand|flagMore) == flagCommand|flagMore {
		return h, fmt.Errorf("%w: frame flags %#02x, want a sum of 1 (more), 2 (long) or 4 (command, never with more)", ErrProtocol, h.flags)
	}
	if h.flags&flagLong == 0 {
		h.size = uint64(b[1])
		return h, nil
	}
	h.size = binary.BigEndian.Uint64(b[1:])
	return h, nil
}

// appendMessage appends the frames of one message.
func appendMessage(b []byte, frames [][]byte) []byte {
	for i, f := range frames {
		b = append(appendHeader(b, flagsOf(i, len(frames)), len(f)), f...)
	}
	return b
}

// flagsOf are those of frame i of a message of n.
func flagsOf(i, n int) byte {
	if i < n-1 {
		return flagMore
	}
	return 0
}

// appendHeader appends the header of a body of size bytes, in the short form
// where it fits. flags is without flagLong.
func appendHeader(b []byte, flags byte, size int) []byte {
	if size <= maxShort {
		return append(b, flags, byte(size))
	}
	b = append(b, flags|flagLong)
	return binary.BigEndian.AppendUint64(b, uint64(size))
}
