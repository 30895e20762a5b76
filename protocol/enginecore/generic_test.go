package enginecore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// generic turns msgpack into the shape that the goldens' JSON has after fromJSON, by means that share nothing with the package.
func generic(t *testing.T, b []byte) any {
	t.Helper()
	v, rest, err := genericValue(b)
	if err != nil || len(rest) > 0 {
		t.Fatalf("generic decode of %x: %v, %d bytes left", b, err, len(rest))
	}
	return v
}

func genericValue(b []byte) (any, []byte, error) {
	switch msgp.NextType(b) {
	case msgp.ArrayType:
		return genericArray(b)
	case msgp.MapType:
		return genericMap(b)
	case msgp.NilType:
		rest, err := msgp.ReadNilBytes(b)
		return nil, rest, err
	case msgp.BoolType:
		return read(msgp.ReadBoolBytes(b))
	case msgp.StrType:
		return read(msgp.ReadStringBytes(b))
	case msgp.Float32Type, msgp.Float64Type:
		return read(msgp.ReadFloat64Bytes(b))
	case msgp.IntType:
		v, rest, err := msgp.ReadInt64Bytes(b)
		return json.Number(fmt.Sprint(v)), rest, err
	case msgp.UintType:
		v, rest, err := msgp.ReadUint64Bytes(b)
		return json.Number(fmt.Sprint(v)), rest, err
	case msgp.BinType:
		v, rest, err := msgp.ReadBytesBytes(b, nil)
		return map[string]any{"__bytes_hex__": hex.EncodeToString(v)}, rest, err
	default:
		return genericExt(b)
	}
}

func read[T any](v T, rest []byte, err error) (any, []byte, error) { return v, rest, err }

func genericExt(b []byte) (any, []byte, error) {
	kind := int8(3)
	ext := msgp.RawExtension{Type: kind}
	rest, err := msgp.ReadExtensionBytes(b, &ext)
	return map[string]any{"__ext__": json.Number("3"), "hex": hex.EncodeToString(ext.Data)}, rest, err
}

func genericArray(b []byte) (any, []byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	out := make([]any, 0)
	for range n {
		var v any
		if err != nil {
			break
		}
		v, b, err = genericValue(b)
		out = append(out, v)
	}
	return out, b, err
}

func genericMap(b []byte) (any, []byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	out := make(map[string]any)
	for range n {
		var k, v any
		if err != nil {
			break
		}
		if k, b, err = genericValue(b); err != nil {
			break
		}
		v, b, err = genericValue(b)
		out[fmt.Sprint(k)] = v
	}
	return out, b, err
}

// fromJSON decodes JSON, keeping integers as they are written and turning other numbers into float64.
func fromJSON(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("golden JSON: %v", err)
	}
	return floats(v)
}

func floats(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") {
			return f
		}
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}

// trimmed cuts the elements off the end of an array that say nothing.
func trimmed(list []any, least int) []any {
	for len(list) > least {
		switch last := list[len(list)-1]; last {
		case nil, json.Number("0"):
			list = list[:len(list)-1]
		default:
			return list
		}
	}
	return list
}
