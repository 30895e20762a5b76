package frontend

import (
	"strconv"
	"unicode/utf8"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
)

// logprobs writes the log probabilities of an answer's tokens in the form of one route.
type logprobs interface {
	// add enters a token. ids and values begin with the token itself; they are nil for one that has no log probability.
	add(ids []uint32, values []float32)

	// appendTo appends what was added since reset.
	appendTo(b []byte) []byte

	reset()
}

// names gives tokens their text.
type names struct {
	tokens *tokenizer.Tokenizer
	asIDs  bool // as token_id:5
}

func (n names) of(id uint32) string {
	if n.asIDs {
		return "token_id:" + strconv.FormatUint(uint64(id), 10)
	}
	return tokenizer.Valid(n.tokens.Bytes(id))
}

// distinct is the number of the first entries of a row that aren't repetitions, at most most, and the entries themselves: the
// token that is there comes first, and isn't told again where it is among the most likely ones.
func distinct(ids []uint32, most int) []int {
	var list []int
	for i, id := range ids {
		if len(list) == most {
			break
		}
		if i == 0 || id != ids[0] {
			list = append(list, i)
		}
	}
	return list
}

// completionLogprobs are those of /v1/completions: four lists.
type completionLogprobs struct {
	names
	alternatives int
	offset       int // characters of the tokens so far

	offsets, values, texts, tops []byte // elements with a comma behind each
}

func (l *completionLogprobs) add(ids []uint32, values []float32) {
	text := l.of(ids[0])
	l.offsets = append(strconv.AppendInt(l.offsets, int64(l.offset), 10), ',')
	l.offset += utf8.RuneCountInString(text)
	l.texts = append(openai.AppendString(l.texts, text), ',')
	if values == nil {
		l.values = append(l.values, "null,"...)
		l.tops = append(l.tops, "null,"...)
		return
	}
	l.values = append(openai.AppendLogprob(l.values, values[0]), ',')
	l.tops = append(l.tops, '{')
	seen := map[string]bool{}
	for _, i := range distinct(ids, l.alternatives+1) {
		text := l.of(ids[i])
		if seen[text] { // another beginning of a character
			continue
		}
		seen[text] = true
		l.tops = append(openai.AppendString(l.tops, text), ':')
		l.tops = append(openai.AppendLogprob(l.tops, values[i]), ',')
	}
	l.tops = append(trimComma(l.tops), "},"...)
}

func (l *completionLogprobs) appendTo(b []byte) []byte {
	b = append(append(b, `{"text_offset":[`...), trimComma(l.offsets)...)
	b = append(append(b, `],"token_logprobs":[`...), trimComma(l.values)...)
	b = append(append(b, `],"tokens":[`...), trimComma(l.texts)...)
	b = append(append(b, `],"top_logprobs":[`...), trimComma(l.tops)...)
	return append(b, `]}`...)
}

func (l *completionLogprobs) reset() {
	l.offsets, l.values, l.texts, l.tops = l.offsets[:0], l.values[:0], l.texts[:0], l.tops[:0]
}

// chatLogprobs are those of /v1/chat/completions: one list of tokens with their alternatives.
type chatLogprobs struct {
	names
	alternatives int

	content []byte // elements with a comma behind each
}

func (l *chatLogprobs) add(ids []uint32, values []float32) {
	l.content = l.appendEntry(l.content, ids[0], values[0])
	l.content = append(l.content, `,"top_logprobs":[`...)
	for _, i := range distinct(ids, l.alternatives) {
		l.content = append(l.appendEntry(l.content, ids[i], values[i]), "},"...)
	}
	l.content = append(trimComma(l.content), "]},"...)
}

func (l *chatLogprobs) appendEntry(b []byte, id uint32, value float32) []byte {
	b = append(b, `{"token":`...)
	b = openai.AppendString(b, l.of(id))
	b = append(b, `,"logprob":`...)
	b = openai.AppendLogprob(b, value)
	b = append(b, `,"bytes":`...)
	return openai.AppendBytes(b, []byte(l.tokens.Bytes(id)))
}

func (l *chatLogprobs) appendTo(b []byte) []byte {
	b = append(append(b, `{"content":[`...), trimComma(l.content)...)
	return append(b, `]}`...)
}

func (l *chatLogprobs) reset() { l.content = l.content[:0] }

// appendPromptLogprobs appends prompt_logprobs: null for the first token, then a map from id to what is known of it.
func appendPromptLogprobs(b []byte, l *dispatch.Logprobs, n names) []byte {
	b = append(b, `[null`...)
	for i := range l.Rows() {
		ids, values := l.Row(i)
		b = append(b, `,{`...)
		for _, at := range distinct(ids, len(ids)) {
			rank := uint32(at)
			if at == 0 {
				rank = l.Ranks[i]
			}
			b = append(strconv.AppendUint(append(b, '"'), uint64(ids[at]), 10), `":{"logprob":`...)
			b = openai.AppendLogprob(b, values[at])
			b = strconv.AppendUint(append(b, `,"rank":`...), uint64(rank), 10)
			b = openai.AppendString(append(b, `,"decoded_token":`...), n.of(ids[at]))
			b = append(b, "},"...)
		}
		b = append(trimComma(b), '}')
	}
	return append(b, ']')
}

func trimComma(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == ',' {
		return b[:n-1]
	}
	return b
}
