package enginecore

import (
	"encoding/binary"

	"github.com/tinylib/msgp/msgp"
)

// What one count of a value's length field stands for.
const (
	countsBytes uint8 = iota
	countsElements
	countsPairs
	countsNothing // 0xc1, which msgpack never uses
)

// shape tells how to find the end of a msgpack value from its first byte.
type shape struct {
	width uint8 // bytes of the length field that follows
	body  uint8 // bytes that follow, besides those the length field counts
	unit  uint8
}

// shapes holds the first bytes 0xc0 to 0xdf. All others carry their length themselves.
var shapes = [32]shape{
	0x00: {}, 0x01: {unit: countsNothing}, 0x02: {}, 0x03: {}, // nil, never used, false, true
	0x04: {width: 1}, 0x05: {width: 2}, 0x06: {width: 4}, // bin
	0x07: {width: 1, body: 1}, 0x08: {width: 2, body: 1}, 0x09: {width: 4, body: 1}, // ext
	0x0a: {body: 4}, 0x0b: {body: 8}, // float
	0x0c: {body: 1}, 0x0d: {body: 2}, 0x0e: {body: 4}, 0x0f: {body: 8}, // uint
	0x10: {body: 1}, 0x11: {body: 2}, 0x12: {body: 4}, 0x13: {body: 8}, // int
	0x14: {body: 2}, 0x15: {body: 3}, 0x16: {body: 5}, 0x17: {body: 9}, 0x18: {body: 17}, // fixext
	0x19: {width: 1}, 0x1a: {width: 2}, 0x1b: {width: 4}, // str
	0x1c: {width: 2, unit: countsElements}, 0x1d: {width: 4, unit: countsElements}, // array
	0x1e: {width: 2, unit: countsPairs}, 0x1f: {width: 4, unit: countsPairs}, // map
}

// measure finds the size of the value b begins with, not counting its children, and how many values those are. It reports false
// where b is too short to tell or no msgpack.
func measure(b []byte) (size, children uint64, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	switch lead := b[0]; {
	case lead < 0x80 || lead >= 0xe0:
		return 1, 0, true
	case lead < 0x90:
		return 1, 2 * uint64(lead&0x0f), true
	case lead < 0xa0:
		return 1, uint64(lead & 0x0f), true
	case lead < 0xc0:
		return 1 + uint64(lead&0x1f), 0, true
	default:
		return measureLong(shapes[lead-0xc0], b[1:])
	}
}

func measureLong(s shape, b []byte) (size, children uint64, ok bool) {
	if len(b) < int(s.width) || s.unit == countsNothing {
		return 0, 0, false
	}
	var count uint64
	switch s.width {
	case 1:
		count = uint64(b[0])
	case 2:
		count = uint64(binary.BigEndian.Uint16(b))
	case 4:
		count = uint64(binary.BigEndian.Uint32(b))
	}
	size = 1 + uint64(s.width) + uint64(s.body)
	switch s.unit {
	case countsElements:
		return size, count, true
	case countsPairs:
		return size, 2 * count, true
	default:
		return size + count, 0, true
	}
}

// skip returns what follows the first value of b. It runs in one pass and without recursion, so nesting costs neither stack nor time.
func skip(b []byte) ([]byte, error) {
	for pending := uint64(1); pending > 0; pending-- {
		size, children, ok := measure(b)
		if !ok || size > uint64(len(b)) {
			return b, msgp.ErrShortBytes
		}
		b = b[size:]
		pending += children
		if pending-1 > uint64(len(b)) { // every value takes at least one byte
			return b, msgp.ErrShortBytes
		}
	}
	return b, nil
}
