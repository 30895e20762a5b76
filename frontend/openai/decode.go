package openai

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

// Limits on a body, counted before it is decoded. They bound what decoding allocates, whatever the body holds: a text of
// 32 MiB is one value.
const (
	MaxDepth   = 256     // arrays and objects inside one another
	MaxValues  = 1 << 18 // strings (keys too), arrays and objects
	MaxNumbers = 1 << 22 // elements of lists in all, so also the token ids of prompts
)

// Decode reads a JSON object into the request that into points to, which after an error is not to be used. The error is an
// [*Error]. Nothing of body is kept.
func Decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return Malformed("", "the body is not valid UTF-8")
	}
	if start := bytes.TrimLeft(body, " \t\r\n"); len(start) == 0 || start[0] != '{' {
		return Malformed("", "the body is %s, want a JSON object", describe(start))
	}
	if err := checkShape(body); err != nil {
		return err
	}
	return explain(json.Unmarshal(body, into))
}

// explain makes a decoder's error one for the client.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var shape *json.UnmarshalTypeError
	if errors.As(err, &shape) {
		return Malformed(shape.Field, "%s: the value is of JSON type %s, want %s", shape.Field, shape.Value, kindOf(shape.Type))
	}
	return Malformed("", "the body is not valid JSON: %s", shorten(err.Error()))
}

// checkShape refuses a body that would make the decoder build more than the limits allow. It judges no syntax.
func checkShape(body []byte) error {
	depth, values, elements := 0, 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			end := endOfString(body, i)
			if end < 0 {
				return nil // the decoder says what is wrong
			}
			i = end
			values++
		case '{', '[':
			values++
			depth++
		case '}', ']':
			depth--
		case ',':
			elements++
		}
		if depth > MaxDepth {
			return Malformed("", "the body has more than %d arrays and objects inside one another", MaxDepth)
		}
		if values > MaxValues {
			return Malformed("", "the body has more than %d strings, arrays and objects", MaxValues)
		}
		if elements > MaxNumbers {
			return Malformed("", "the body has more than %d elements", MaxNumbers)
		}
	}
	return nil
}

// endOfString is where the string that begins at start has its closing quote; -1 where it has none.
func endOfString(body []byte, start int) int {
	for i := start + 1; ; {
		quote := bytes.IndexByte(body[i:], '"')
		if quote < 0 {
			return -1
		}
		i += quote
		slashes := 0
		for body[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i++
	}
}

// describe names the kind of a JSON value by its first byte.
func describe(value []byte) string {
	if len(value) == 0 {
		return "empty"
	}
	switch c := value[0]; {
	case c == '"':
		return "a string"
	case c == '[':
		return "an array"
	case c == '{':
		return "an object"
	case c == 't', c == 'f':
		return "a boolean"
	case c == 'n':
		return "null"
	case c == '-', c >= '0' && c <= '9':
		return "a number"
	default:
		return "not JSON"
	}
}
