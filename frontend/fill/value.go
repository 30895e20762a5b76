package fill

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/goccy/go-json"
)

// types is a set of JSON's types. An integer is a number without a fraction, however it is written.
type types uint8

const (
	null types = 1 << iota
	boolean
	integer
	fraction // a number that is no integer
	text
	array
	object
	number = integer | fraction
)

// value is a JSON value that keeps the order of an object's members.
type value struct {
	kind    types // exactly one; a number that was read is of kind number
	truth   bool
	text    string // of a string; of a number, as it is written
	items   []value
	members []member
}

// member is a name of an object and its value.
type member struct {
	name  string
	value value
}

// find returns the value of a name; the last one counts.
func (v *value) find(name string) *value {
	for i := len(v.members) - 1; i >= 0; i-- {
		if v.members[i].name == name {
			return &v.members[i].value
		}
	}
	return nil
}

// rat returns the value of a number, if it is one of at most maxDigits digits before and behind the point.
func (v *value) rat() (*big.Rat, error) {
	if v.kind&number == 0 {
		return nil, fmt.Errorf("%s, want a number", v.short())
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(v.text), "e")
	digits := len(mantissa)
	if len(exponent) > 0 {
		e, ok := new(big.Int).SetString(strings.TrimPrefix(exponent, "+"), 10)
		if !ok || !e.IsInt64() || e.CmpAbs(big.NewInt(maxDigits)) > 0 {
			return nil, fmt.Errorf("%s, want a number of at most %d digits", v.short(), maxDigits)
		}
		digits += int(e.Abs(e).Int64())
	}
	r, ok := new(big.Rat).SetString(v.text)
	if digits > maxDigits || !ok {
		return nil, fmt.Errorf("%s, want a number of at most %d digits", v.short(), maxDigits)
	}
	return r, nil
}

// append appends v as JSON.
func (v *value) append(b []byte) []byte {
	switch v.kind {
	case null:
		return append(b, "null"...)
	case boolean:
		return fmt.Appendf(b, "%t", v.truth)
	case text:
		return appendString(b, v.text)
	case array:
		b = append(b, '[')
		for i := range v.items {
			b = v.items[i].append(separate(b, i))
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		for i := range v.members {
			b = append(appendString(separate(b, i), v.members[i].name), ": "...)
			b = v.members[i].value.append(b)
		}
		return append(b, '}')
	default:
		return append(b, v.text...)
	}
}

func separate(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	quoted, err := json.MarshalWithOption(s, json.DisableHTMLEscape())
	if err != nil {
		panic(fmt.Sprintf("fill: string %q: %v", s, err))
	}
	return append(b, quoted...)
}

// short is v for an error's text.
func (v *value) short() string {
	switch {
	case v.kind == array:
		return "an array"
	case v.kind == object:
		return "an object"
	}
	s := v.append(nil)
	if len(s) > 40 {
		s = append(s[:40:40], "…"...)
	}
	return strings.ToValidUTF8(string(s), "")
}

// key is text that equal values share: 1 and 1.0, and objects whatever the order of their members.
func (v *value) key() string {
	switch {
	case v.kind&number != 0:
		if r, err := v.rat(); err == nil {
			return r.RatString()
		}
		return v.text
	case v.kind == array:
		keys := make([]string, 0, len(v.items))
		for i := range v.items {
			keys = append(keys, v.items[i].key())
		}
		return "[" + strings.Join(keys, ",") + "]"
	case v.kind == object:
		keys := make([]string, 0, len(v.members))
		for i := range v.members {
			keys = append(keys, string(appendString(nil, v.members[i].name))+":"+v.members[i].value.key())
		}
		slices.Sort(keys)
		return "{" + strings.Join(keys, ",") + "}"
	default:
		return string(v.append(nil))
	}
}
