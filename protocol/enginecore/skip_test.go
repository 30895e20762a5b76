package enginecore

import (
	"bytes"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

func TestSkip_EveryShape(t *testing.T) {
	text := string(bytes.Repeat([]byte{'x'}, 1<<16))
	values := map[string][]byte{
		"nil": msgp.AppendNil(nil), "true": msgp.AppendBool(nil, true), "fixint": msgp.AppendInt(nil, 7), "negative fixint": msgp.AppendInt(nil, -7),
		"uint8": msgp.AppendUint(nil, 200), "uint16": msgp.AppendUint(nil, 1<<15), "uint32": msgp.AppendUint(nil, 1<<31), "uint64": msgp.AppendUint64(nil, 1<<63),
		"int8": msgp.AppendInt(nil, -100), "int16": msgp.AppendInt(nil, -1000), "int32": msgp.AppendInt(nil, -100000), "int64": msgp.AppendInt64(nil, -1<<40),
		"float32": msgp.AppendFloat32(nil, 1), "float64": msgp.AppendFloat64(nil, 1),
		"fixstr": msgp.AppendString(nil, "ab"), "str8": msgp.AppendString(nil, text[:40]), "str16": msgp.AppendString(nil, text[:400]), "str32": msgp.AppendString(nil, text),
		"bin8": msgp.AppendBytes(nil, []byte("ab")), "bin16": msgp.AppendBytes(nil, []byte(text[:400])), "bin32": msgp.AppendBytes(nil, []byte(text)),
		"ext8": appendExt(3), "fixext1": appendExt(1), "fixext2": appendExt(2), "fixext4": appendExt(4), "fixext8": appendExt(8), "fixext16": appendExt(16),
		"ext16": appendExt(300), "ext32": appendExt(1 << 16), "empty ext": appendExt(0),
		"fixarray": {0x92, 1, 2}, "array16": {0xdc, 0, 1, 1}, "array32": {0xdd, 0, 0, 0, 1, 1},
		"fixmap": {0x81, 1, 2}, "map16": {0xde, 0, 1, 1, 2}, "map32": {0xdf, 0, 0, 0, 1, 1, 2}, "nested": {0x92, 0x81, 1, 0x91, 2, 3},
	}
	for name, b := range values {
		t.Run(name, func(t *testing.T) {
			if rest, err := skip(append(b[:len(b):len(b)], 9)); err != nil || !bytes.Equal(rest, []byte{9}) {
				t.Errorf("skip: rest %d bytes, %v, want the one byte behind", len(rest), err)
			}
			if _, err := skip(b[:len(b)-1]); err == nil {
				t.Error("skip of a cut value: no error")
			}
		})
	}
}

func appendExt(n int) []byte { return append(appendExtHeader(nil, extTensor, n), make([]byte, n)...) }

func TestSkip_Hostile(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":                  {},
		"never used":             {0xc1},
		"array of 2^32-1":        {0xdd, 0xff, 0xff, 0xff, 0xff},
		"map of 2^32-1":          {0xdf, 0xff, 0xff, 0xff, 0xff, 1, 2},
		"string of 4 GB":         {0xdb, 0xff, 0xff, 0xff, 0xff, 'x'},
		"arrays of 2^32-1 in it": bytes.Repeat([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, 1000),
		"nested, without an end": bytes.Repeat([]byte{0x91}, 1<<20),
	} {
		if _, err := skip(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A million levels cost no stack and one pass, wherever a decoder leaves out what it doesn't know.
func TestSkip_DeepNesting(t *testing.T) {
	const depth = 1 << 20
	bomb := append(bytes.Repeat([]byte{0x91}, depth), 0xc0)
	if rest, err := skip(bomb); err != nil || len(rest) != 0 {
		t.Fatalf("skip: %d bytes left, %v", len(rest), err)
	}
	var r Request
	if err := DecodeRequest(append([]byte{0xdc, 0, 23, 0xa1, 'a', 0x90}, bomb...), &r); err == nil || r.ID != "a" {
		t.Errorf("request with a bomb as its features: id %q, %v, want id a and an error at its end", r.ID, err)
	}
}
