package openai

import (
	"bytes"

	"github.com/goccy/go-json"
)

// maxTools bounds the tools of a request, OpenAI's limit being 128.
const maxTools = 1024

// Tool is a function that the model may call.
type Tool struct {
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// Function describes a tool.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON schema; nil or null = no parameters
}

// ToolCall is a call that the model made.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function FunctionCall `json:"function"`
}

// FunctionCall names a function and holds its arguments, a JSON text.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// The modes of a tool choice.
const (
	ToolsNone     = "none"
	ToolsAuto     = "auto"
	ToolsRequired = "required"
	ToolsNamed    = "function" // exactly the named one
)

// ToolChoice says whether tools are called. After Check it has a mode.
type ToolChoice struct {
	Mode string
	Name string // with ToolsNamed
}

// UnmarshalJSON takes a mode, {"type":"function","function":{"name":…}} or, as the Responses API has it,
// {"type":"function","name":…}.
func (c *ToolChoice) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Mode)
	}
	var named struct {
		Type     string   `json:"type"`
		Name     string   `json:"name"`
		Function Function `json:"function"`
	}
	if err := json.Unmarshal(b, &named); err != nil {
		return Malformed("tool_choice", "tool_choice is %s, want a string or an object that names a function", describe(b))
	}
	c.Mode, c.Name = named.Type, named.Function.Name
	if c.Name == "" {
		c.Name = named.Name
	}
	return nil
}

// settle fills in the default and refuses a choice that doesn't fit the tools.
func (c *ToolChoice) settle(tools []Tool) error {
	switch c.Mode {
	case "":
		c.Mode = ToolsNone
		if len(tools) > 0 {
			c.Mode = ToolsAuto
		}
		return nil
	case ToolsNone:
		return nil
	case ToolsAuto, ToolsRequired, ToolsNamed:
	default:
		return BadRequest("tool_choice", "tool_choice is %q, want \"none\", \"auto\", \"required\" or a function.", shorten(c.Mode))
	}
	if len(tools) == 0 {
		return BadRequest("tool_choice", "tool_choice is allowed only with `tools`.")
	}
	if c.Mode == ToolsNamed && !c.isAmong(tools) {
		return BadRequest("tool_choice", "tool_choice names the function %q, which is not among the tools.", shorten(c.Name))
	}
	return nil
}

func (c *ToolChoice) isAmong(tools []Tool) bool {
	for i := range tools {
		if tools[i].Function.Name == c.Name {
			return true
		}
	}
	return false
}

func checkTools(tools []Tool) error {
	if len(tools) > maxTools {
		return BadRequest("tools", "%d tools, want at most %d.", len(tools), maxTools)
	}
	for i := range tools {
		switch f := &tools[i].Function; {
		case tools[i].Type != "" && tools[i].Type != "function":
			return BadRequest("tools", "tools[%d]: type is %q, want \"function\".", i, shorten(tools[i].Type))
		case f.Name == "":
			return BadRequest("tools", "tools[%d]: the function has no name.", i)
		case !isNull(f.Parameters) && f.Parameters[0] != '{':
			return BadRequest("tools", "tools[%d]: parameters are %s, want an object.", i, describe(f.Parameters))
		}
	}
	return nil
}
