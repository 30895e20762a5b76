package openai

// Streaming are the fields that say how an answer is sent.
type Streaming struct {
	Stream  bool           `json:"stream"`
	Options *StreamOptions `json:"stream_options"`
}

// StreamOptions refine a stream.
type StreamOptions struct {
	IncludeUsage    bool `json:"include_usage"`          // an event with the usage and no choice before the end
	ContinuousUsage bool `json:"continuous_usage_stats"` // the usage so far in every event; only with IncludeUsage
}

// IncludeUsage says whether the usage is told at the end of a stream.
func (s *Streaming) IncludeUsage() bool { return s.Options != nil && s.Options.IncludeUsage }

// ContinuousUsage says whether the usage is told in every event.
func (s *Streaming) ContinuousUsage() bool { return s.IncludeUsage() && s.Options.ContinuousUsage }

func (s *Streaming) check() error {
	if s.Options != nil && !s.Stream {
		return BadRequest("stream_options", "stream_options are allowed only with `stream`: true.")
	}
	return nil
}
