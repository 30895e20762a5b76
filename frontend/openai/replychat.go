package openai

import "strconv"

// ChatCompletion is the answer of POST /v1/chat/completions that is whole.
type ChatCompletion struct {
	Head
	Choices    []Choice
	Usage      Usage
	KVTransfer []byte // JSON; nil = null
}

// Append appends the answer. What is told about the prompt is taken from the first choice.
func (c *ChatCompletion) Append(b []byte) []byte {
	b = c.Head.append(b, "chat.completion")
	b = append(b, `,"choices":[`...)
	for i := range c.Choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.Choices[i].appendChat(b)
	}
	b = append(b, `],"service_tier":null`...)
	b = c.appendFingerprint(b)
	b = append(b, `,"usage":`...)
	b = c.Usage.appendWhole(b, true)
	b = append(b, `,"prompt_logprobs":`...)
	b = appendRaw(b, c.Choices[0].PromptLogprobs)
	b = append(b, `,"prompt_token_ids":`...)
	b = AppendIDs(b, c.Choices[0].PromptTokenIDs)
	b = append(b, `,"prompt_text":null,"kv_transfer_params":`...)
	b = appendRaw(b, c.KVTransfer)
	return append(b, `,"ec_transfer_params":null,"metrics":null}`...)
}

func (c *Choice) appendChat(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"message":{"role":"assistant","content":`...)
	if c.Call == nil {
		b = appendText(b, c.Text)
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null`...)
	if c.Call != nil {
		b = append(b, `,"tool_calls":[{"id":`...)
		b = AppendString(b, c.Call.ID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = AppendString(b, c.Call.Name)
		b = append(b, `,"arguments":`...)
		b = appendText(b, c.Text)
		b = append(b, `}}]`...)
	}
	b = append(b, `},"logprobs":`...)
	b = appendRaw(b, c.Logprobs)
	b = append(b, `,"finish_reason":`...)
	b = appendFinish(b, c.Finish)
	b = append(b, `,"stop_reason":`...)
	b = appendRaw(b, c.Stop)
	b = append(b, `,"token_ids":`...)
	b = AppendIDs(b, c.TokenIDs)
	return append(b, `,"routed_experts":null,"weight_versions":null}`...)
}

// ChatEvents writes the events of a streamed chat completion.
type ChatEvents struct {
	head   Head
	prefix []byte // of an event, up to the index of the choice
}

// NewChatEvents prepares what all events of a stream begin with.
func NewChatEvents(h Head) *ChatEvents {
	prefix := h.append([]byte(`data: `), "chat.completion.chunk")
	return &ChatEvents{h, append(prefix, `,"choices":[{"index":`...)}
}

// AppendFirst appends the event that a choice begins with: it tells the role, the ids of the prompt where they are not nil, and
// the call where the choice is one.
func (e *ChatEvents) AppendFirst(b []byte, c *Choice, soFar *Usage) []byte {
	b = append(b, e.prefix...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"delta":{"role":"assistant","content":""`...)
	if c.Call != nil {
		b = append(b, `,"tool_calls":[{"id":`...)
		b = AppendString(b, c.Call.ID)
		b = append(b, `,"type":"function","index":0,"function":{"name":`...)
		b = AppendString(b, c.Call.Name)
		b = append(b, `,"arguments":""}}]`...)
	}
	b = append(b, `},"logprobs":null,"finish_reason":null}]`...)
	if soFar != nil {
		b = append(b, `,"usage":`...)
		b = soFar.appendSoFar(b)
	}
	b = append(b, `,"prompt_token_ids":`...)
	b = AppendIDs(b, c.PromptTokenIDs)
	return append(b, `,"prompt_text":null}`+endOfEvent...)
}

// Append appends an event with one choice. soFar, where not nil, is told with it; last says that no event follows it.
func (e *ChatEvents) Append(b []byte, c *Choice, soFar *Usage, last bool) []byte {
	b = append(b, e.prefix...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = c.appendDelta(b)
	b = append(b, `,"logprobs":`...)
	b = appendRaw(b, c.Logprobs)
	b = append(b, `,"finish_reason":`...)
	b = appendFinish(b, c.Finish)
	if c.Finish != "" {
		b = append(b, `,"stop_reason":`...)
		b = appendRaw(b, c.Stop)
	}
	b = append(b, `,"token_ids":`...)
	b = AppendIDs(b, c.TokenIDs)
	if c.Finish != "" {
		b = append(b, `,"weight_versions":null`...)
	}
	b = append(b, `}]`...)
	if soFar != nil {
		b = append(b, `,"usage":`...)
		b = soFar.appendSoFar(b)
	}
	if last {
		b = e.head.appendFingerprint(b)
	}
	return append(b, `,"kv_transfer_params":null}`+endOfEvent...)
}

func (c *Choice) appendDelta(b []byte) []byte {
	if c.Call == nil {
		b = append(b, `,"delta":{"content":`...)
		b = appendText(b, c.Text)
		return append(b, '}')
	}
	b = append(b, `,"delta":{"tool_calls":[{"index":0,"function":{"arguments":`...)
	b = appendText(b, c.Text)
	return append(b, `}}]}`...)
}

// AppendUsage appends the event that tells the usage and has no choice.
func (e *ChatEvents) AppendUsage(b []byte, u *Usage) []byte {
	return e.head.appendUsageEvent(b, "chat.completion.chunk", u, true)
}
