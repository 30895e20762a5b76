package frontend

import "vllm-vcr/frontend/openai"

// completionEvents is a stream of /v1/completions.
type completionEvents struct {
	*openai.CompletionEvents
	usage, continuous bool
}

func newCompletionEvents(j *job, s *openai.Streaming) *completionEvents {
	return &completionEvents{openai.NewCompletionEvents(j.head), s.IncludeUsage(), s.ContinuousUsage()}
}

func (e *completionEvents) open(b []byte, _ *job) []byte { return b }

func (e *completionEvents) choice(b []byte, j *job, c *choice) []byte {
	return e.Append(b, c.seal(), soFar(j, e.continuous), j.left == 0 && !e.usage)
}

func (e *completionEvents) done(b []byte, j *job) []byte {
	if e.usage {
		b = e.AppendUsage(b, &j.usage)
	}
	return append(b, openai.Done...)
}

// soFar is the usage where every event tells it.
func soFar(j *job, continuous bool) *openai.Usage {
	if !continuous {
		return nil
	}
	return &j.usage
}

// chatEvents is a stream of /v1/chat/completions.
type chatEvents struct {
	*openai.ChatEvents
	usage, continuous bool
}

func newChatEvents(j *job, s *openai.Streaming) *chatEvents {
	return &chatEvents{openai.NewChatEvents(j.head), s.IncludeUsage(), s.ContinuousUsage()}
}

// open tells the role of every choice.
func (e *chatEvents) open(b []byte, j *job) []byte {
	for _, c := range j.choices {
		b = e.AppendFirst(b, &c.Choice, soFar(j, e.continuous))
	}
	return b
}

func (e *chatEvents) choice(b []byte, j *job, c *choice) []byte {
	return e.Append(b, c.seal(), soFar(j, e.continuous), j.left == 0 && !e.usage)
}

func (e *chatEvents) done(b []byte, j *job) []byte {
	if e.usage {
		b = e.AppendUsage(b, &j.usage)
	}
	return append(b, openai.Done...)
}
