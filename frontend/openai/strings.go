package openai

import (
	"bytes"

	"github.com/goccy/go-json"
)

// Strings is one string or a list of them.
type Strings []string

// UnmarshalJSON takes a string or a list of strings.
func (s *Strings) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		*s = make(Strings, 1)
		return json.Unmarshal(b, &(*s)[0])
	}
	var list []*string
	if err := json.Unmarshal(b, &list); err != nil {
		return Malformed("", "the value is %s, want a string or an array of strings", describe(b))
	}
	for _, each := range list {
		if each == nil {
			return Malformed("", "an array holds null, want only strings")
		}
		*s = append(*s, *each)
	}
	return nil
}
