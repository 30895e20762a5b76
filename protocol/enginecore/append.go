package enginecore

import "github.com/tinylib/msgp/msgp"

// appendInt writes a signed integer in its shortest form, as vLLM's encoders do (a positive one as unsigned).
func appendInt(b []byte, v int64) []byte {
	if v >= 0 {
		return msgp.AppendUint64(b, uint64(v))
	}
	return msgp.AppendInt64(b, v)
}

// appendRaw writes an opaque value; an empty one is nil.
func appendRaw(b []byte, raw msgp.Raw) []byte {
	if len(raw) == 0 {
		return msgp.AppendNil(b)
	}
	return append(b, raw...)
}

// appendText writes a string; an empty one is nil.
func appendText(b []byte, s string) []byte {
	if s == "" {
		return msgp.AppendNil(b)
	}
	return msgp.AppendString(b, s)
}

// appendTokens writes token ids; a nil list is nil.
func appendTokens(b []byte, tokens []uint32) []byte {
	if tokens == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendArrayHeader(b, uint32(len(tokens)))
	for _, t := range tokens {
		b = msgp.AppendUint32(b, t)
	}
	return b
}

func appendUints(b []byte, values []uint64) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(values)))
	for _, v := range values {
		b = msgp.AppendUint64(b, v)
	}
	return b
}

func appendStrings(b []byte, values []string) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(values)))
	for _, s := range values {
		b = msgp.AppendString(b, s)
	}
	return b
}

func appendUintField(b []byte, key string, v uint64) []byte {
	return msgp.AppendUint64(msgp.AppendString(b, key), v)
}

func appendBoolField(b []byte, key string, v bool) []byte {
	return msgp.AppendBool(msgp.AppendString(b, key), v)
}

func appendStringField(b []byte, key, v string) []byte {
	return msgp.AppendString(msgp.AppendString(b, key), v)
}

func appendTextField(b []byte, key, v string) []byte {
	return appendText(msgp.AppendString(b, key), v)
}

func appendRawField(b []byte, key string, v msgp.Raw) []byte {
	return appendRaw(msgp.AppendString(b, key), v)
}
