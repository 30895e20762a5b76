package openai

import (
	"bytes"
	"strings"

	"github.com/goccy/go-json"
)

// Message is one turn of a chat.
type Message struct {
	Role       string     `json:"role"`
	Content    Content    `json:"content"`
	Name       string     `json:"name"`
	ToolCalls  []ToolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// maxRole bounds the name of a role, in bytes.
const maxRole = 64

func (m *Message) check(i int) error {
	if m.Role == "" || len(m.Role) > maxRole {
		return BadRequest("messages", "messages[%d]: role is %q, want a name of 1 to %d bytes such as \"user\".", i, shorten(m.Role), maxRole)
	}
	if m.Content.Other != "" {
		return BadRequest("messages", "messages[%d]: a content part of type %q, and the model takes only text.", i, shorten(m.Content.Other))
	}
	return nil
}

// Content is the text of a message: a string, or parts whose texts are joined by line breaks, as vLLM does for a model that
// takes only text.
type Content struct {
	Text  string
	Other string // the type of a part that is not text
}

// UnmarshalJSON takes a string, a list of parts or null.
func (c *Content) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, &c.Text)
	case len(b) == 0 || b[0] != '[':
		return Malformed("messages", "content is %s, want a string or an array of parts", describe(b))
	}
	var parts []part
	if err := json.Unmarshal(b, &parts); err != nil {
		return Malformed("messages", "content is an array of something else than parts: want objects with \"type\" and \"text\"")
	}
	c.join(parts)
	return nil
}

// part is an element of a content.
type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

func (c *Content) join(parts []part) {
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text", "":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		default:
			c.Other = p.Type
		}
	}
	c.Text = strings.Join(texts, "\n")
}
