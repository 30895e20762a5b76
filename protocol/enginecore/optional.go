package enginecore

import "github.com/tinylib/msgp/msgp"

// Optional is a value that may be absent: nil on the wire, the zero Optional here.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some is an Optional that holds v.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

func (d *decoder) optionalUint() Optional[uint64] {
	if d.null() {
		return Optional[uint64]{}
	}
	return Some(d.uint())
}

func (d *decoder) optionalUint32() Optional[uint32] {
	if d.null() {
		return Optional[uint32]{}
	}
	return Some(d.uint32())
}

func (d *decoder) optionalInt() Optional[int64] {
	if d.null() {
		return Optional[int64]{}
	}
	return Some(d.int())
}

func (d *decoder) optionalFloat() Optional[float64] {
	if d.null() {
		return Optional[float64]{}
	}
	return Some(d.float())
}

func (d *decoder) optionalBool() Optional[bool] {
	if d.null() {
		return Optional[bool]{}
	}
	return Some(d.bool())
}

func appendOptionalUint(b []byte, v Optional[uint64]) []byte {
	if !v.Set {
		return msgp.AppendNil(b)
	}
	return msgp.AppendUint64(b, v.Value)
}

func appendOptionalUint32(b []byte, v Optional[uint32]) []byte {
	return appendOptionalUint(b, Optional[uint64]{Value: uint64(v.Value), Set: v.Set})
}

func appendOptionalInt(b []byte, v Optional[int64]) []byte {
	if !v.Set {
		return msgp.AppendNil(b)
	}
	return appendInt(b, v.Value)
}

func appendOptionalFloat(b []byte, v Optional[float64]) []byte {
	if !v.Set {
		return msgp.AppendNil(b)
	}
	return msgp.AppendFloat64(b, v.Value)
}

func appendOptionalBool(b []byte, v Optional[bool]) []byte {
	if !v.Set {
		return msgp.AppendNil(b)
	}
	return msgp.AppendBool(b, v.Value)
}
