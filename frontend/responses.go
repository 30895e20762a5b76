package frontend

import (
	"vllm-vcr/frontend/openai"
)

// responses answers in the form of OpenAI's Responses API. Nothing is stored.
func (s *Server) responses(c *call) error {
	var r openai.ResponsesRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	chat, err := r.Chat()
	if err != nil {
		return err
	}
	j, err := s.converse(c, chat, "resp_")
	if err != nil {
		return err
	}
	answer := openai.Response{Head: j.head, Request: &r, Choice: chat.ToolChoice.Mode, Call: j.choices[0].Call}
	answer.ItemID = "msg_" + randomID()
	if answer.Call != nil {
		answer.ItemID = "fc_" + randomID()
	}
	if r.Stream {
		return j.stream(&responseEvents{openai.ResponseEvents{Response: answer}})
	}
	choices, err := j.collect()
	if err != nil {
		return err
	}
	answer.Text, answer.Finish, answer.Usage = choices[0].Text, choices[0].Finish, j.usage
	writeJSON(c.ctx, answer.Append(nil))
	return nil
}

// responseEvents is a stream of /v1/responses.
type responseEvents struct{ openai.ResponseEvents }

func (e *responseEvents) open(b []byte, _ *job) []byte { return e.Open(b) }

func (e *responseEvents) choice(b []byte, _ *job, c *choice) []byte {
	e.Finish = c.Finish
	if len(c.Text) == 0 {
		return b
	}
	return e.Delta(b, c.Text)
}

func (e *responseEvents) done(b []byte, j *job) []byte {
	e.Usage = j.usage
	return e.Done(b)
}
