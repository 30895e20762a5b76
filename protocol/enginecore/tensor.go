package enginecore

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/tinylib/msgp/msgp"
)

const (
	extTensor     = 3  // the ext type of a tensor's bytes
	maxDimensions = 32 // what NumPy allows at most, before its version 2
)

// Tensor is a NumPy array or a torch tensor: [dtype, shape, data]. The data is inside the message (as ext type 3, which vLLM does
// below 256 bytes) or a frame of its own behind it.
type Tensor struct {
	DType string // NumPy's ("<i8", "<f4") or torch's ("int64", "float32")
	Shape []int
	Data  []byte // nil where the data is in a frame; aliases the message
	Frame uint32 // index of the frame in the multipart message, 1 and up; 0 where the data is inside
}

var tensorNames = []string{"dtype", "shape", "data"}

// tensor reads a tensor. Nil gives nil.
func (d *decoder) tensor() *Tensor {
	if d.null() {
		return nil
	}
	t := &Tensor{}
	n := d.array(tensorNames, func(i int) {
		switch i {
		case 0:
			t.DType = d.string()
		case 1:
			t.Shape = d.shape()
		case 2:
			d.tensorData(t)
		default:
			d.skip()
		}
	})
	if d.err == nil && n < 3 {
		d.fail("tensor of %d elements, want 3", n)
	}
	if d.err != nil {
		return nil
	}
	return t
}

func (d *decoder) shape() []int {
	shape := make([]int, d.arrayLen(maxDimensions))
	for i := range shape {
		v := d.uint()
		if v > math.MaxInt32 {
			d.fail("dimension %d is %d, want at most %d", i, v, math.MaxInt32)
		}
		shape[i] = int(v)
	}
	return shape
}

func (d *decoder) tensorData(t *Tensor) {
	switch msgp.NextType(d.b) {
	case msgp.IntType, msgp.UintType:
		if t.Frame = d.uint32(); d.err == nil && t.Frame == 0 {
			d.fail("frame 0, want 1 or more")
		}
	case msgp.MapType:
		d.fail("a map, want bytes or the index of a frame: tensors in shared memory are not supported")
	default:
		t.Data = d.ext(extTensor)
	}
}

// ext reads the body of an ext value of the given type; it aliases the message.
func (d *decoder) ext(kind byte) []byte {
	if d.err != nil {
		return nil
	}
	start := d.b
	d.skip()
	if d.err != nil {
		return nil
	}
	value := start[:len(start)-len(d.b)]
	at := extTypeAt(value[0])
	if at == 0 || value[at] != kind {
		d.fail("no ext value of type %d", kind)
		return nil
	}
	return value[at+1 : len(value) : len(value)]
}

// extTypeAt is the position of the type in an ext value that begins with lead, 0 where it is none.
func extTypeAt(lead byte) int {
	switch {
	case lead >= 0xd4 && lead <= 0xd8: // fixext
		return 1
	case lead >= 0xc7 && lead <= 0xc9: // a length of 1, 2 or 4 bytes first
		return 1 + 1<<(lead-0xc7)
	default:
		return 0
	}
}

func (t *Tensor) append(b []byte) []byte {
	if t == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendArrayHeader(b, 3)
	b = msgp.AppendString(b, t.DType)
	b = msgp.AppendArrayHeader(b, uint32(len(t.Shape)))
	for _, n := range t.Shape {
		b = appendInt(b, int64(n))
	}
	if t.Frame != 0 {
		return msgp.AppendUint32(b, t.Frame)
	}
	return append(appendExtHeader(b, extTensor, len(t.Data)), t.Data...)
}

func appendExtHeader(b []byte, kind byte, n int) []byte {
	switch {
	case n > 0 && n <= 16 && n&(n-1) == 0: // 1, 2, 4, 8 and 16 bytes have a form of their own
		return append(b, 0xd4+byte(bits.TrailingZeros(uint(n))), kind)
	case n <= math.MaxUint8:
		return append(b, 0xc7, byte(n), kind)
	case n <= math.MaxUint16:
		return append(binary.BigEndian.AppendUint16(append(b, 0xc8), uint16(n)), kind)
	default:
		return append(binary.BigEndian.AppendUint32(append(b, 0xc9), uint32(n)), kind)
	}
}
