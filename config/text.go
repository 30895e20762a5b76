package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

// textValue is a string that check finds good. Every string must be UTF-8 besides, since it travels as JSON.
type textValue struct {
	p       *string
	kind    string
	allowed string
	check   func(string) bool
}

// text takes any string.
func text(p *string) Value {
	return textValue{p, "string", "UTF-8 text", func(string) bool { return true }}
}

// parsed takes the strings that check accepts, which allowed describes.
func parsed(p *string, allowed string, check func(string) bool) Value {
	return textValue{p, "string", allowed, check}
}

func choice(p *string, known ...string) Value {
	check := func(s string) bool { return oneOf(s, known) == nil }
	return textValue{p, strings.Join(known, "|"), "one of " + strings.Join(known, ", "), check}
}

func (v textValue) String() string           { return *v.p }
func (v textValue) Type() string             { return v.kind }
func (v textValue) JSON() string             { return toJSON(*v.p) }
func (v textValue) Allowed() string          { return v.allowed }
func (v textValue) Set(text string) error    { *v.p = text; return nil }
func (v textValue) SetJSON(raw []byte) error { return setJSONText(v, raw) }

func (v textValue) Check() error {
	if !utf8.ValidString(*v.p) || !v.check(*v.p) {
		return wanted(v)
	}
	return nil
}

// setJSONText sets v to what a JSON string holds.
func setJSONText(v Value, raw []byte) error {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return errors.New("want a string")
	}
	return v.Set(*s)
}

// toJSON is for strings and lists of them, which always have a JSON form.
func toJSON(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Errorf("%T as JSON: %w", value, err))
	}
	return string(encoded)
}
