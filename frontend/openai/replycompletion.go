package openai

import "strconv"

// Completion is the answer of POST /v1/completions that is whole.
type Completion struct {
	Head
	Choices    []Choice
	Usage      Usage
	KVTransfer []byte // JSON; nil = null
}

// Append appends the answer.
func (c *Completion) Append(b []byte) []byte {
	b = c.Head.append(b, "text_completion")
	b = append(b, `,"choices":[`...)
	for i := range c.Choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.Choices[i].appendCompletion(b)
	}
	b = append(b, `],"service_tier":null`...)
	b = c.appendFingerprint(b)
	b = append(b, `,"usage":`...)
	b = c.Usage.appendWhole(b, false)
	b = append(b, `,"kv_transfer_params":`...)
	b = appendRaw(b, c.KVTransfer)
	return append(b, `,"ec_transfer_params":null,"metrics":null}`...)
}

func (c *Choice) appendCompletion(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"text":`...)
	b = appendText(b, c.Text)
	b = append(b, `,"logprobs":`...)
	b = appendRaw(b, c.Logprobs)
	b = append(b, `,"finish_reason":`...)
	b = appendFinish(b, c.Finish)
	b = append(b, `,"stop_reason":`...)
	b = appendRaw(b, c.Stop)
	b = append(b, `,"token_ids":`...)
	b = AppendIDs(b, c.TokenIDs)
	b = append(b, `,"prompt_logprobs":`...)
	b = appendRaw(b, c.PromptLogprobs)
	b = append(b, `,"prompt_token_ids":`...)
	b = AppendIDs(b, c.PromptTokenIDs)
	return append(b, `,"routed_experts":null,"weight_versions":null}`...)
}

// CompletionEvents writes the events of a streamed completion.
type CompletionEvents struct {
	head   Head
	prefix []byte // of an event, up to the index of the choice
}

// NewCompletionEvents prepares what all events of a stream begin with.
func NewCompletionEvents(h Head) *CompletionEvents {
	prefix := h.append([]byte(`data: `), "text_completion")
	return &CompletionEvents{h, append(prefix, `,"choices":[{"index":`...)}
}

// Append appends an event with one choice. soFar, where not nil, is told with it; last says that no event follows it.
func (e *CompletionEvents) Append(b []byte, c *Choice, soFar *Usage, last bool) []byte {
	b = append(b, e.prefix...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"text":`...)
	b = appendText(b, c.Text)
	b = append(b, `,"logprobs":`...)
	b = appendRaw(b, c.Logprobs)
	b = append(b, `,"finish_reason":`...)
	b = appendFinish(b, c.Finish)
	b = append(b, `,"stop_reason":`...)
	b = appendRaw(b, c.Stop)
	b = append(b, `,"prompt_token_ids":`...)
	b = AppendIDs(b, c.PromptTokenIDs)
	b = append(b, `,"token_ids":`...)
	b = AppendIDs(b, c.TokenIDs)
	b = append(b, `,"weight_versions":null}]`...)
	if soFar != nil {
		b = append(b, `,"usage":`...)
		b = soFar.appendSoFar(b)
	}
	if last {
		b = e.head.appendFingerprint(b)
	}
	return append(b, `,"kv_transfer_params":null}`+endOfEvent...)
}

// AppendUsage appends the event that tells the usage and has no choice.
func (e *CompletionEvents) AppendUsage(b []byte, u *Usage) []byte {
	return e.head.appendUsageEvent(b, "text_completion", u, false)
}

func (h *Head) appendUsageEvent(b []byte, object string, u *Usage, created bool) []byte {
	b = append(b, `data: `...)
	b = h.append(b, object)
	b = append(b, `,"choices":[],"usage":`...)
	b = u.appendFinal(b, created)
	b = h.appendFingerprint(b)
	return append(b, "}"+endOfEvent...)
}

const endOfEvent = "\n\n"

// Done ends a stream that came to its end.
const Done = "data: [DONE]" + endOfEvent

// AppendEvent appends the event that tells an error.
func (e *Error) AppendEvent(b []byte) []byte {
	b = append(b, `data: `...)
	b = e.Append(b)
	return append(b, endOfEvent...)
}
