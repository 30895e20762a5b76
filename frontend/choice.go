package frontend

import (
	"strconv"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/protocol/enginecore"
)

// choice is one answer while it is made. What is in its Choice is what came since reset: of a stream what the next event tells,
// else all of it.
type choice struct {
	openai.Choice
	text     *tokenizer.Detokenizer
	logprobs logprobs // nil = none are wanted
	names    names
	prompt   []uint32

	mute           bool // the prompt is all that is shown
	keepsStop      bool // a token that ended the answer has its text shown
	tellsIDs       bool
	echoesLogprobs bool   // the prompt's come before the answer's
	tellsPrompt    bool   // as prompt_logprobs
	callFinish     string // why an answer that is a call of a tool ends, if it is complete

	begun     bool // the first chunk has come
	generated int  // tokens
}

// take enters what came from the engine.
func (c *choice) take(chunk *dispatch.Chunk) {
	c.takePrompt(chunk)
	shown := len(chunk.Tokens)
	if chunk.Finish == enginecore.FinishStop && !c.keepsStop {
		shown-- // the last token is the reason, not a part of the text
	}
	for i, id := range chunk.Tokens {
		c.takeToken(id, i < shown)
		c.takeLogprobs(chunk, i)
		if stop, ok := c.text.Stopped(); ok {
			c.finish("stop", openai.AppendString(nil, stop))
			return
		}
	}
	if chunk.Finish != enginecore.FinishNone {
		if !c.mute {
			c.Text = c.text.Finish(c.Text)
		}
		c.finish(chunk.Finish.String(), stopJSON(chunk.StopReason))
	}
}

func (c *choice) takeToken(id uint32, shown bool) {
	c.generated++
	if shown && !c.mute {
		c.Text = c.text.Append(c.Text, id)
	}
	if c.tellsIDs {
		c.TokenIDs = append(c.TokenIDs, id)
	}
}

func (c *choice) takeLogprobs(chunk *dispatch.Chunk, i int) {
	if c.logprobs != nil && !c.mute && i < chunk.Logprobs.Rows() {
		c.logprobs.add(chunk.Logprobs.Row(i))
	}
}

// takePrompt enters what the first chunk knows of the prompt. Its first token has no log probability.
func (c *choice) takePrompt(chunk *dispatch.Chunk) {
	if c.begun {
		return
	}
	c.begun = true
	l := &chunk.PromptLogprobs
	if c.tellsPrompt {
		c.PromptLogprobs = appendPromptLogprobs(nil, l, c.names)
	}
	if !c.echoesLogprobs {
		return
	}
	for i := range c.prompt {
		if i == 0 || i > l.Rows() {
			c.logprobs.add(c.prompt[i:i+1], nil)
			continue
		}
		c.logprobs.add(l.Row(i - 1))
	}
}

func (c *choice) finish(reason string, stop []byte) {
	if reason == "stop" && c.Call != nil && c.callFinish != "" {
		reason = c.callFinish
	}
	c.Finish, c.Stop = reason, stop
}

// seal makes what was collected ready to be told.
func (c *choice) seal() *openai.Choice {
	if c.logprobs != nil {
		c.Logprobs = c.logprobs.appendTo(c.Logprobs[:0])
	}
	return &c.Choice
}

// reset forgets what was told.
func (c *choice) reset() {
	c.Text, c.TokenIDs, c.PromptTokenIDs = c.Text[:0], c.TokenIDs[:0], nil
	if c.logprobs != nil {
		c.logprobs.reset()
	}
}

// stopJSON is what an answer stopped at; nil = nothing to tell.
func stopJSON(r enginecore.StopReason) []byte {
	switch {
	case r.Token.Set:
		return strconv.AppendInt(nil, r.Token.Value, 10)
	case r.Text != "":
		return openai.AppendString(nil, r.Text)
	default:
		return nil
	}
}
