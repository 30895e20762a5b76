package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-json"
)

// wordsValue is a list of words out of a fixed few, in any order and number.
type wordsValue struct {
	p     *[]string
	known []string
}

func words(p *[]string, known ...string) Value { return wordsValue{p, known} }

func (v wordsValue) String() string  { return strings.Join(*v.p, ",") }
func (v wordsValue) Type() string    { return "list" }
func (v wordsValue) JSON() string    { return toJSON(append([]string{}, *v.p...)) } // never null
func (v wordsValue) Allowed() string { return "at least one of " + strings.Join(v.known, ", ") }

func (v wordsValue) Set(text string) error {
	*v.p = nil
	if text != "" {
		*v.p = strings.Split(text, ",")
	}
	return nil
}

// Append adds words to those there are, for a flag that is given again.
func (v wordsValue) Append(text string) error {
	*v.p = append(*v.p, strings.Split(text, ",")...)
	return nil
}

// SetJSON finds unknown words too: in a list of fixed words they are a matter of shape.
func (v wordsValue) SetJSON(raw []byte) error {
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("want a list of %s", strings.Join(v.known, ", "))
	}
	got := make([]string, len(list))
	for i, word := range list {
		if word == nil {
			return fmt.Errorf("element %d: null: %w", i, oneOf("", v.known))
		}
		if err := oneOf(*word, v.known); err != nil {
			return fmt.Errorf("element %d: %q: %w", i, *word, err)
		}
		got[i] = *word
	}
	*v.p = got
	return nil
}

func (v wordsValue) Check() error {
	if len(*v.p) == 0 {
		return wanted(v)
	}
	for _, word := range *v.p {
		if err := oneOf(word, v.known); err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
	}
	return nil
}

func oneOf(s string, known []string) error {
	if slices.Contains(known, s) {
		return nil
	}
	return fmt.Errorf("want one of %s", strings.Join(known, ", "))
}
