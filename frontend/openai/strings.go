package openai

import (
	"bytes"

	"github.com/goccy/go-json"
)

// Strings is what stop takes: one string or a list of them.
type Strings []string

// UnmarshalJSON takes a string or a list of strings.
func (s *Strings) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		*s = make(Strings, 1)
		return json.Unmarshal(b, &(*s)[0])
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return Malformed("stop", "stop is %s, want a string or an array of strings", describe(b))
	}
	*s = make(Strings, len(list))
	for i, each := range list {
		if describe(each) != "a string" || json.Unmarshal(each, &(*s)[i]) != nil {
			return Malformed("stop", "stop[%d] is %s, want a string", i, describe(each))
		}
	}
	return nil
}
