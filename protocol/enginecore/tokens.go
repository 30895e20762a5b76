package enginecore

import "encoding/binary"

// The first bytes of the plain forms of a token id, as the msgpack specification has them; below plainFixed it is the number
// itself.
const (
	plainFixed  = 0x80
	plainByte   = 0xcc // one byte follows
	plainShort  = 0xcd // two bytes, big-endian
	plainNumber = 0xce // four bytes, big-endian
)

// appendPlainTokens reads token ids in their plain forms off the front of b, at most n of them, and appends them to dst: a
// prompt is thousands of them, and little else costs a request as much. It stops at anything else, and returns what is left.
func appendPlainTokens(dst []uint32, b []byte, n int) (tokens []uint32, rest []byte) {
	for ; n > 0 && len(b) > 0; n-- {
		switch first := b[0]; {
		case first < plainFixed:
			dst, b = append(dst, uint32(first)), b[1:]
		case first == plainShort && len(b) >= 3:
			dst, b = append(dst, uint32(binary.BigEndian.Uint16(b[1:]))), b[3:]
		case first == plainNumber && len(b) >= 5:
			dst, b = append(dst, binary.BigEndian.Uint32(b[1:])), b[5:]
		case first == plainByte && len(b) >= 2:
			dst, b = append(dst, uint32(b[1])), b[2:]
		default:
			return dst, b
		}
	}
	return dst, b
}
