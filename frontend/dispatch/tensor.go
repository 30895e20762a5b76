package dispatch

import (
	"encoding/binary"
	"fmt"
	"math"

	"vllm-vcr/protocol/enginecore"
)

// Element types by their names: NumPy's and torch's.
const (
	int32NumPy, int32Torch     = "<i4", "int32"
	int64NumPy, int64Torch     = "<i8", "int64"
	float32NumPy, float32Torch = "<f4", "float32"
)

// appendInts appends a tensor's elements, which are ids or ranks: whole numbers of 32 bits, not negative.
func appendInts(to []uint32, t *enginecore.Tensor, aux [][]byte) ([]uint32, error) {
	size := 4
	switch t.DType {
	case int32NumPy, int32Torch:
	case int64NumPy, int64Torch:
		size = 8
	default:
		return to, fmt.Errorf("element type %.16q, want int32 or int64", t.DType)
	}
	data, err := dataOf(t, aux, size)
	if err != nil {
		return to, err
	}
	grown := to
	for ; len(data) > 0; data = data[size:] {
		v := uint64(binary.LittleEndian.Uint32(data))
		if size == 8 {
			v = binary.LittleEndian.Uint64(data)
		}
		if v > math.MaxInt32 {
			return to, fmt.Errorf("element %d of %d bytes, want 0 to %d", int64(v), size, math.MaxInt32)
		}
		grown = append(grown, uint32(v))
	}
	return grown, nil
}

// appendFloats appends a tensor's elements.
func appendFloats(to []float32, t *enginecore.Tensor, aux [][]byte) ([]float32, error) {
	if t.DType != float32NumPy && t.DType != float32Torch {
		return to, fmt.Errorf("element type %.16q, want float32", t.DType)
	}
	data, err := dataOf(t, aux, 4)
	if err != nil {
		return to, err
	}
	for ; len(data) > 0; data = data[4:] {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(data)))
	}
	return to, nil
}

// dataOf finds the bytes of a tensor, in the message or in a frame behind it, and checks that they are as many as its shape says.
func dataOf(t *enginecore.Tensor, aux [][]byte, size int) ([]byte, error) {
	data := t.Data
	if t.Frame != 0 {
		if int(t.Frame) > len(aux) {
			return nil, fmt.Errorf("frame %d of %d", t.Frame, len(aux))
		}
		data = aux[t.Frame-1]
	}
	want := uint64(size)
	for _, n := range t.Shape {
		if n != 0 && want > uint64(math.MaxInt64)/uint64(n) {
			return nil, fmt.Errorf("shape %v: too large", t.Shape)
		}
		want *= uint64(n)
	}
	if uint64(len(data)) != want {
		return nil, fmt.Errorf("%d bytes for shape %v of %d bytes each", len(data), t.Shape, size)
	}
	return data, nil
}
