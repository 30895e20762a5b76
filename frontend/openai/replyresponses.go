package openai

import "strconv"

// Response is the answer of POST /v1/responses, as far as it has come.
type Response struct {
	Head
	Request *ResponsesRequest
	Choice  string // of tools, as it was settled
	ItemID  string // of the one item of the output
	Text    []byte // of the message, or the arguments of the call; valid UTF-8
	Call    *Call  // nil = the output is a message
	Finish  string // "" = in progress
	Usage   Usage

	PresencePenalty, FrequencyPenalty float64
}

// status is the response's and its item's.
func (r *Response) status() string {
	switch r.Finish {
	case "":
		return "in_progress"
	case "length", "abort":
		return "incomplete"
	default:
		return "completed"
	}
}

// Append appends the response.
func (r *Response) Append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = AppendString(b, r.ID)
	b = append(b, `,"created_at":`...)
	b = strconv.AppendInt(b, r.Created, 10)
	b = append(b, `,"incomplete_details":`...)
	b = r.appendIncomplete(b)
	b = append(b, `,"instructions":`...)
	b = appendOptionalString(b, r.Request.Instructions)
	b = append(b, `,"metadata":`...)
	b = appendRaw(b, r.Request.Metadata)
	b = append(b, `,"model":`...)
	b = AppendString(b, r.Model)
	b = append(b, `,"object":"response","output":[`...)
	if r.Finish != "" {
		b = r.appendItem(b)
	}
	b = append(b, `],"parallel_tool_calls":`...)
	b = strconv.AppendBool(b, r.Request.ParallelTools == nil || *r.Request.ParallelTools)
	b = append(b, `,"temperature":`...)
	b = AppendFloat(b, or(r.Request.Temperature, 1))
	b = append(b, `,"tool_choice":`...)
	b = r.appendToolChoice(b)
	b = append(b, `,"tools":`...)
	b = appendTools(b, r.Request.Tools)
	b = append(b, `,"top_p":`...)
	b = AppendFloat(b, or(r.Request.TopP, 1))
	b = append(b, `,"background":false,"max_output_tokens":`...)
	b = appendOptionalInt(b, r.Request.MaxOutputTokens)
	b = append(b, `,"max_tool_calls":null,"previous_response_id":null,"prompt":null,"prompt_cache_options":null,"prompt_cache_key":null`...)
	b = append(b, `,"prompt_cache_retention":null,"reasoning":null,"safety_identifier":null,"service_tier":"auto","status":"`...)
	b = append(b, r.status()...)
	b = append(b, `","text":`...)
	b = r.appendFormat(b)
	b = append(b, `,"top_logprobs":null,"truncation":"disabled","usage":`...)
	b = r.appendUsage(b)
	b = append(b, `,"user":`...)
	b = appendOptionalString(b, r.Request.User)
	b = append(b, `,"presence_penalty":`...)
	b = AppendFloat(b, r.PresencePenalty)
	b = append(b, `,"frequency_penalty":`...)
	b = AppendFloat(b, r.FrequencyPenalty)
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"input_messages":null,"output_messages":null}`...)
}

func (r *Response) appendIncomplete(b []byte) []byte {
	if r.Finish == "length" {
		return append(b, `{"reason":"max_output_tokens"}`...)
	}
	return append(b, `null`...)
}

// appendItem appends the item of the output.
func (r *Response) appendItem(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = AppendString(b, r.ItemID)
	if r.Call != nil {
		b = append(b, `,"arguments":`...)
		b = appendText(b, r.Text)
		b = append(b, `,"call_id":`...)
		b = AppendString(b, r.Call.ID)
		b = append(b, `,"name":`...)
		b = AppendString(b, r.Call.Name)
		b = append(b, `,"type":"function_call","status":"`...)
		b = append(b, r.status()...)
		return append(b, `"}`...)
	}
	b = append(b, `,"content":[`...)
	if r.Finish != "" {
		b = appendPart(b, r.Text, `null`)
	}
	b = append(b, `],"role":"assistant","status":"`...)
	b = append(b, r.status()...)
	return append(b, `","type":"message","phase":null}`...)
}

func appendPart(b, text []byte, logprobs string) []byte {
	b = append(b, `{"annotations":[],"text":`...)
	b = appendText(b, text)
	b = append(b, `,"type":"output_text","logprobs":`...)
	b = append(b, logprobs...)
	return append(b, '}')
}

func (r *Response) appendToolChoice(b []byte) []byte {
	if r.Choice != ToolsNamed {
		return AppendString(b, r.Choice)
	}
	b = append(b, `{"type":"function","name":`...)
	b = AppendString(b, r.Request.ToolChoice.Name)
	return append(b, '}')
}

func appendTools(b []byte, tools []ResponsesTool) []byte {
	b = append(b, '[')
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","name":`...)
		b = AppendString(b, tools[i].Name)
		b = append(b, `,"description":`...)
		b = appendOptionalString(b, tools[i].Description)
		b = append(b, `,"parameters":`...)
		b = appendRaw(b, tools[i].Parameters)
		b = append(b, `,"strict":null}`...)
	}
	return append(b, ']')
}

func (r *Response) appendFormat(b []byte) []byte {
	if r.Request.Text == nil || r.Request.Text.Format == nil {
		return append(b, `null`...)
	}
	f := r.Request.Text.Format
	b = append(b, `{"format":{"type":`...)
	b = AppendString(b, f.Type)
	if !isNull(f.Schema) {
		b = append(b, `,"name":`...)
		b = AppendString(b, f.Name)
		b = append(b, `,"schema":`...)
		b = append(b, f.Schema...)
	}
	return append(b, `}}`...)
}

func (r *Response) appendUsage(b []byte) []byte {
	if r.Finish == "" {
		return append(b, `null`...)
	}
	b = append(b, `{"input_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Usage.Prompt), 10)
	b = append(b, `,"input_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Usage.Cached), 10)
	b = append(b, `,"cache_write_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Usage.Created), 10)
	b = append(b, `,"input_tokens_per_turn":[],"cached_tokens_per_turn":[]},"output_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Usage.Completion), 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":0,"tool_output_tokens":0,"output_tokens_per_turn":[]`...)
	b = append(b, `,"tool_output_tokens_per_turn":[]},"total_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Usage.Prompt+r.Usage.Completion), 10)
	return append(b, '}')
}

func or(v *float64, without float64) float64 {
	if v == nil {
		return without
	}
	return *v
}

func appendOptionalString(b []byte, s string) []byte {
	if s == "" {
		return append(b, `null`...)
	}
	return AppendString(b, s)
}

func appendOptionalInt(b []byte, v *int64) []byte {
	if v == nil {
		return append(b, `null`...)
	}
	return strconv.AppendInt(b, *v, 10)
}
