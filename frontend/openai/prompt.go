package openai

import (
	"bytes"

	"github.com/goccy/go-json"
)

// MaxPrompts bounds the prompts of one request.
const MaxPrompts = 2048

// Prompt is what a completion continues or an embedding is made of: texts or lists of token ids, one or many. At most one of
// the two is not empty.
type Prompt struct {
	Texts  []string
	Tokens [][]uint32
}

// Len is the number of prompts.
func (p *Prompt) Len() int { return len(p.Texts) + len(p.Tokens) }

// UnmarshalJSON takes a string, a list of strings, a list of ids or a list of such lists.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case len(b) > 0 && b[0] == '"':
		p.Texts = make([]string, 1)
		return json.Unmarshal(b, &p.Texts[0])
	case len(b) > 0 && b[0] == '[':
		return p.list(b)
	default:
		return Malformed("prompt", "prompt: the value is %s, want a string, an array of strings, an array of token ids or an array of such arrays", describe(b))
	}
}

func (p *Prompt) list(b []byte) error {
	var err error
	switch first := bytes.TrimLeft(b[1:], " \t\r\n"); {
	case len(first) > 0 && first[0] == '"':
		err = json.Unmarshal(b, &p.Texts)
	case len(first) > 0 && first[0] == '[':
		err = json.Unmarshal(b, &p.Tokens)
	case len(first) > 0 && first[0] == ']':
		return nil
	default:
		p.Tokens = make([][]uint32, 1)
		err = json.Unmarshal(b, &p.Tokens[0])
	}
	if err != nil {
		return Malformed("prompt", "prompt: an array of mixed or wrong elements, want only strings, only token ids or only arrays of token ids")
	}
	return nil
}

// check counts the prompts, and looks for empty ones and for tokens that aren't there; field is the name by which the request
// has them.
func (p *Prompt) check(field string, l Limits) error {
	switch n := p.Len(); {
	case n == 0:
		return BadRequest(field, "%s must be there and not be empty", field)
	case n > MaxPrompts:
		return BadRequest(field, "%s has %d entries, want at most %d", field, n, MaxPrompts)
	}
	for _, ids := range p.Tokens {
		if len(ids) == 0 {
			return BadRequest(field, "%s must not have an empty list of token ids", field)
		}
		if err := checkIDs(field, ids, l); err != nil {
			return err
		}
	}
	return nil
}
