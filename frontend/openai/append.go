package openai

import (
	"math"
	"strconv"
)

// AppendString appends s as a JSON string. s must be valid UTF-8; nothing but what JSON asks for is escaped.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	b = AppendEscaped(b, s)
	return append(b, '"')
}

// AppendEscaped appends the inside of a JSON string.
func AppendEscaped(b []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, s[i])
		start = i + 1
	}
	return append(b, s[start:]...)
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	default:
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}

// AppendFloat appends a finite number in its shortest form, with ".0" behind a whole one as Python writes it.
func AppendFloat(b []byte, f float64) []byte { return appendFloat(b, f, 64) }

// MinLogprob is the smallest log probability that is told: what is below it has this value.
const MinLogprob = -9999

// AppendLogprob appends a log probability. What has no place in JSON is the least likely one.
func AppendLogprob(b []byte, v float32) []byte {
	if !(v > MinLogprob) || math.IsInf(float64(v), 0) {
		v = MinLogprob
	}
	return appendFloat(b, float64(v), 32)
}

func appendFloat(b []byte, f float64, bits int) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendFloat(b, f, 'f', 1, bits)
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

// AppendIDs appends a list of numbers; nil is null.
func AppendIDs(b []byte, ids []uint32) []byte {
	if ids == nil {
		return append(b, `null`...)
	}
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	return append(b, ']')
}

// AppendBytes appends the list of a string's bytes, as chat logprobs have them.
func AppendBytes(b []byte, bytes []byte) []byte {
	b = append(b, '[')
	for i, c := range bytes {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(c), 10)
	}
	return append(b, ']')
}
