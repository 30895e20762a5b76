package enginecore

import (
	"encoding/binary"
	"math/bits"

	"github.com/tinylib/msgp/msgp"
)

// samplingKey describes one key of the map.
type samplingKey struct {
	name      string
	read      func(d *decoder, s *SamplingParams) // consumes the value; nil leaves the default
	isDefault func(s *SamplingParams) bool
	write     func(b []byte, s *SamplingParams) []byte // appends the value
}

// sampling reads the map into s, or a new value where s is nil. Nil gives nil.
func (d *decoder) sampling(s *SamplingParams) *SamplingParams {
	wire := d.b
	if d.null() {
		return nil
	}
	if s == nil {
		s = new(SamplingParams)
	}
	*s = DefaultSampling()
	d.fields(func(key []byte) {
		i, known := samplingIndex[string(key)]
		if !known {
			d.skip()
			return
		}
		s.Explicit |= 1 << i
		samplingKeys[i].read(d, s)
	})
	if d.err != nil {
		return nil
	}
	n := len(wire) - len(d.b)
	s.Wire = msgp.Raw(wire[:n:n])
	return s
}

// appendSampling writes the map as it was received, or from the fields as the Python frontend of line v does. Nil is nil.
func appendSampling(b []byte, v Version, s *SamplingParams) []byte {
	if s == nil {
		return msgp.AppendNil(b)
	}
	if s.Wire != nil {
		return append(b, s.Wire...)
	}
	keys := s.written(v)
	// Python reserves the header for all its keys, before it leaves out those at their default.
	b = binary.BigEndian.AppendUint16(append(b, 0xde), uint16(bits.OnesCount64(uint64(keys))))
	for i := range samplingKeys {
		if keys&(1<<i) != 0 {
			b = msgp.AppendString(b, samplingKeys[i].name)
			b = samplingKeys[i].write(b, s)
		}
	}
	return b
}

// written is the set of keys to write: explicit or off their default, and known to line v.
func (s *SamplingParams) written(v Version) SamplingKeys {
	keys := s.Explicit & (keysEnd - 1)
	for i := range samplingKeys {
		if !samplingKeys[i].isDefault(s) {
			keys |= 1 << i
		}
	}
	if !v.AtLeast(33) {
		keys &^= keys33
	}
	return keys
}
