package openai

import (
	"bytes"

	"github.com/goccy/go-json"
)

// ResponsesRequest is the body of POST /v1/responses. Fields that are not here are ignored.
type ResponsesRequest struct {
	Model           string          `json:"model"`
	Input           Input           `json:"input"`
	Instructions    string          `json:"instructions"`
	MaxOutputTokens *int64          `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	TopP            *float64        `json:"top_p"`
	TopK            *int64          `json:"top_k"`
	Seed            *int64          `json:"seed"`
	Stop            Strings         `json:"stop"`
	Stream          bool            `json:"stream"`
	Tools           []ResponsesTool `json:"tools"`
	ToolChoice      ToolChoice      `json:"tool_choice"`
	ParallelTools   *bool           `json:"parallel_tool_calls"`
	Text            *ResponsesText  `json:"text"`
	Metadata        json.RawMessage `json:"metadata"`
	User            string          `json:"user"`
	Priority        int64           `json:"priority"`
	RequestID       string          `json:"request_id"`
	CacheSalt       string          `json:"cache_salt"`
	PreviousID      string          `json:"previous_response_id"`
	Background      bool            `json:"background"`
	ExtraArgs       json.RawMessage `json:"vllm_xargs"`
}

// ResponsesTool is a function in the form of the Responses API.
type ResponsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ResponsesText binds the form of the text.
type ResponsesText struct {
	Format *ResponsesFormat `json:"format"`
}

// ResponsesFormat is a response format with the schema beside its name.
type ResponsesFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// Input is what a response answers: a text or a list of items.
type Input struct {
	Text  string
	Items []InputItem
}

// InputItem is a message, a call of a function or its result; reasoning and other items are passed over.
type InputItem struct {
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Content   Content `json:"content"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Output    Content `json:"output"`
}

// UnmarshalJSON takes a string or a list of items.
func (in *Input) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, &in.Text)
	case len(b) == 0 || b[0] != '[':
		return Malformed("input", "input is %s, want a string or an array of items", describe(b))
	}
	return json.Unmarshal(b, &in.Items)
}

// Chat is the chat that the request stands for. It has still to be checked.
func (r *ResponsesRequest) Chat() (*ChatRequest, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	c := &ChatRequest{
		Common:              Common{Model: r.Model, User: r.User, Priority: r.Priority, RequestID: r.RequestID, CacheSalt: r.CacheSalt},
		Sampling:            Sampling{Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, Seed: r.Seed, Stop: r.Stop, ExtraArgs: r.ExtraArgs},
		Streaming:           Streaming{Stream: r.Stream},
		Output:              Output{ResponseFormat: r.format()},
		Messages:            r.messages(),
		MaxCompletionTokens: r.MaxOutputTokens,
		ToolChoice:          r.ToolChoice,
		ParallelToolCalls:   r.ParallelTools,
	}
	for _, t := range r.Tools {
		c.Tools = append(c.Tools, Tool{Type: t.Type, Function: Function{t.Name, t.Description, t.Parameters}})
	}
	return c, nil
}

func (r *ResponsesRequest) check() error {
	switch {
	case r.PreviousID != "":
		return NotFound("previous_response_id", "Response with id '%s' not found: responses are not stored.", shorten(r.PreviousID))
	case r.Background:
		return BadRequest("background", "background needs stored responses, and responses are not stored.")
	case r.Input.Text == "" && len(r.Input.Items) == 0:
		return BadRequest("input", "input must be there and not be empty.")
	}
	if err := checkAtLeastOne("max_output_tokens", r.MaxOutputTokens); err != nil {
		return err
	}
	return checkObject("metadata", r.Metadata)
}

func (r *ResponsesRequest) format() *ResponseFormat {
	if r.Text == nil || r.Text.Format == nil {
		return nil
	}
	f := r.Text.Format
	if f.Type != "json_schema" {
		return &ResponseFormat{Type: f.Type}
	}
	return &ResponseFormat{Type: f.Type, JSONSchema: &JSONSchema{f.Name, f.Schema}}
}

func (r *ResponsesRequest) messages() []Message {
	var list []Message
	if r.Instructions != "" {
		list = append(list, Message{Role: "system", Content: Content{Text: r.Instructions}})
	}
	if r.Input.Text != "" {
		list = append(list, Message{Role: "user", Content: Content{Text: r.Input.Text}})
	}
	for i := range r.Input.Items {
		switch item := &r.Input.Items[i]; item.Type {
		case "", "message":
			list = append(list, Message{Role: item.Role, Content: item.Content})
		case "function_call":
			call := ToolCall{item.CallID, "function", FunctionCall{item.Name, item.Arguments}}
			list = append(list, Message{Role: "assistant", ToolCalls: []ToolCall{call}})
		case "function_call_output":
			list = append(list, Message{Role: "tool", Content: item.Output, ToolCallID: item.CallID})
		}
	}
	return list
}
