package config

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

// namesValue is a list of names, maybe empty.
type namesValue struct{ p *[]string }

func names(p *[]string) Value { return namesValue{p} }

func (v namesValue) String() string  { return strings.Join(*v.p, ",") }
func (v namesValue) Type() string    { return "list" }
func (v namesValue) JSON() string    { return toJSON(append([]string{}, *v.p...)) } // never null
func (v namesValue) Allowed() string { return "names, separated by commas" }

func (v namesValue) Set(text string) error {
	*v.p = nil
	if text != "" {
		*v.p = strings.Split(text, ",")
	}
	return nil
}

// Append adds names to those there are, for a flag that is given again.
func (v namesValue) Append(text string) error {
	*v.p = append(*v.p, strings.Split(text, ",")...)
	return nil
}

func (v namesValue) SetJSON(raw []byte) error {
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil || slices.Contains(list, nil) {
		return errors.New("want a list of strings")
	}
	*v.p = nil
	for _, name := range list {
		*v.p = append(*v.p, *name)
	}
	return nil
}

func (v namesValue) Check() error {
	for _, name := range *v.p {
		if !isName(name) {
			return wanted(v)
		}
	}
	return nil
}

// isName refuses what nobody could mean.
func isName(s string) bool {
	return strings.TrimSpace(s) == s && s != "" && utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\r\n")
}
