package openai

import "strconv"

// Head is what all parts of one answer have in common.
type Head struct {
	ID          string
	Model       string
	Fingerprint string // of the server
	Created     int64  // seconds since 1970
}

// append appends the members before the choices, with the opening brace.
func (h *Head) append(b []byte, object string) []byte {
	b = append(b, `{"id":`...)
	b = AppendString(b, h.ID)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, h.Created, 10)
	b = append(b, `,"model":`...)
	return AppendString(b, h.Model)
}

func (h *Head) appendFingerprint(b []byte) []byte {
	b = append(b, `,"system_fingerprint":`...)
	return AppendString(b, h.Fingerprint)
}

// Choice is one answer, or in a stream what came of it since the event before. Slices that hold JSON are nil for null.
type Choice struct {
	Index          int
	Text           []byte // valid UTF-8
	Finish         string // "" = null: it goes on
	Stop           []byte // JSON: what it stopped at
	Logprobs       []byte // JSON
	PromptLogprobs []byte // JSON; in an answer that is whole
	TokenIDs       []uint32
	PromptTokenIDs []uint32
	Call           *Call // the text is the arguments of this call
}

// Call is a call of a tool in an answer.
type Call struct {
	ID   string
	Name string
}

// Usage counts tokens.
type Usage struct {
	Prompt     int
	Completion int
	Cached     int // of the prompt
	Created    int // of the prompt, that went into a cache
}

// appendWhole appends the value of "usage" in an answer that is whole; created says whether Created is told.
func (u *Usage) appendWhole(b []byte, created bool) []byte {
	b = u.appendCounts(b)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Cached), 10)
	b = append(b, `,"created_cache_tokens":`...)
	if created {
		b = strconv.AppendInt(b, int64(u.Created), 10)
	} else {
		b = append(b, `null`...)
	}
	return append(b, `,"multimodal_tokens":null},"completion_tokens_details":null}`...)
}

// appendFinal appends it for the end of a stream, without nulls.
func (u *Usage) appendFinal(b []byte, created bool) []byte {
	b = u.appendCounts(b)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Cached), 10)
	if created {
		b = append(b, `,"created_cache_tokens":`...)
		b = strconv.AppendInt(b, int64(u.Created), 10)
	}
	return append(b, `}}`...)
}

// appendSoFar appends it for an event before the end.
func (u *Usage) appendSoFar(b []byte) []byte { return append(u.appendCounts(b), '}') }

func (u *Usage) appendCounts(b []byte) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Prompt+u.Completion), 10)
	b = append(b, `,"completion_tokens":`...)
	return strconv.AppendInt(b, int64(u.Completion), 10)
}

// appendRaw appends JSON; nil is null.
func appendRaw(b, raw []byte) []byte {
	if raw == nil {
		return append(b, `null`...)
	}
	return append(b, raw...)
}

// appendFinish appends a finish reason; "" is null.
func appendFinish(b []byte, finish string) []byte {
	if finish == "" {
		return append(b, `null`...)
	}
	b = append(b, '"')
	b = append(b, finish...)
	return append(b, '"')
}

// appendText appends valid UTF-8 as a JSON string.
func appendText(b, text []byte) []byte {
	b = append(b, '"')
	start := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, text[start:i]...)
		b = appendEscape(b, c)
		start = i + 1
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}
