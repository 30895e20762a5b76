package frontend

import (
	"strings"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
)

// chat answers the last message of a conversation.
func (s *Server) chat(c *call) error {
	var r openai.ChatRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	j, err := s.converse(c, &r, "chatcmpl-")
	if err != nil {
		return err
	}
	if r.Stream {
		return j.stream(newChatEvents(j, &r.Streaming))
	}
	choices, err := j.collect()
	if err != nil {
		return err
	}
	answer := openai.ChatCompletion{Head: j.head, Choices: choices, Usage: j.usage, KVTransfer: j.kvTransfer}
	writeJSON(c.ctx, answer.Append(nil))
	return nil
}

// converse checks a chat and gives it to the engines.
func (s *Server) converse(c *call, r *openai.ChatRequest, prefix string) (*job, error) {
	limits := s.limits()
	if err := r.Check(limits); err != nil {
		return nil, err
	}
	o, err := s.order(c, &r.Common, prefix)
	if err != nil {
		return nil, err
	}
	prompt, err := s.chatPrompt(r, limits)
	if err != nil {
		return nil, err
	}
	if err := checkVolume([][]uint32{prompt}, r.Count()); err != nil {
		return nil, err
	}
	most, err := r.AnswerTokens(len(prompt), limits)
	if err != nil {
		return nil, err
	}
	w := wanted{Sampling: r.Sampling, stream: r.Stream}
	top, told := r.Alternatives()
	if told {
		w.logprobs = &top
	}
	if err := o.constrain(&r.Output, &w); err != nil {
		return nil, err
	}
	o.callTools(r, &w)
	if err := o.add(s, prompt, &w, most, ""); err != nil {
		return nil, err
	}
	for _, c := range o.choices {
		c.tellsPrompt = r.PromptLogprobs != nil
		if r.ReturnTokenIDs {
			c.PromptTokenIDs = prompt
		}
		if told {
			c.logprobs = &chatLogprobs{names: c.names, alternatives: alternatives(top, s)}
		}
	}
	return o.submit(s, c)
}

// chatPrompt renders a conversation.
func (s *Server) chatPrompt(r *openai.ChatRequest, l openai.Limits) ([]uint32, error) {
	messages := render(r)
	bytes := 0
	for _, m := range messages {
		bytes += len(m.Content)
	}
	if bytes > l.MaxModelLen*tokenizer.MaxTokenBytes {
		return nil, openai.PromptTooLong(l.MaxModelLen, l)
	}
	if r.ContinueFinal {
		return fit(s.tokens.ContinueChat(messages), r.TruncatePrompt, l)
	}
	return fit(s.tokens.Chat(messages, r.GenerationPrompt()), r.TruncatePrompt, l)
}

// render makes text of what a chat has beside text: the tools go before everything, calls stand behind what their message says.
func render(r *openai.ChatRequest) []tokenizer.Message {
	messages := make([]tokenizer.Message, 0, len(r.Messages)+1)
	if len(r.Tools) > 0 && r.ToolChoice.Mode != openai.ToolsNone {
		messages = append(messages, tokenizer.Message{Role: "system", Content: renderTools(r.Tools)})
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		content := m.Content.Text
		for _, call := range m.ToolCalls {
			content += "\n" + call.Function.Name + "(" + call.Function.Arguments + ")"
		}
		messages = append(messages, tokenizer.Message{Role: m.Role, Content: content})
	}
	return messages
}

func renderTools(tools []openai.Tool) string {
	var b strings.Builder
	b.WriteString("Tools:")
	for i := range tools {
		f := &tools[i].Function
		b.WriteString("\n" + f.Name + " " + f.Description + " ")
		b.Write(f.Parameters)
	}
	return b.String()
}
