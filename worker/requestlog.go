package worker

import "vllm-vcr/worker/engine"

// Admit implements engine.Sink.
func (o *outputs) Admit(r *engine.Request) {
	if o.verbose {
		o.log.Info().Str("request_id", r.ID).Uint64("prompt_len", r.PromptTokens).Uint64("max_tokens", r.MaxTokens).
			Msg("request started")
	}
}

// Queued implements engine.Sink.
func (o *outputs) Queued(r *engine.Request) {
	if o.verbose {
		o.log.Info().Str("request_id", r.ID).Msg("request queued")
	}
}

func (o *outputs) logFinished(r *engine.Request, finish engine.Finish) {
	if o.verbose {
		o.log.Info().Str("request_id", r.ID).Uint64("prompt_len", r.PromptTokens).Uint64("output_tokens", r.Emitted()).
			Str("finish_reason", finishReason(finish).String()).Msg("request finished")
	}
}

// causes words why a request ended early.
var causes = map[engine.Cause]string{
	engine.Duplicate:      "duplicate request id",
	engine.TooLong:        "prompt and output exceed max_model_len",
	engine.Injected:       "failure injection",
	engine.NoSampling:     "no sampling parameters",
	engine.NothingToDo:    "max_tokens is 0",
	engine.Aborted:        "aborted by the frontend",
	engine.ShuttingDown:   "shutting down",
	engine.PausedByClient: "generation is paused",
	engine.Unreadable:     "request could not be read",
}

// logEnd tells of what is likely somebody's mistake even where requests are not logged.
func (o *outputs) logEnd(r *engine.Request, finish engine.Finish, cause engine.Cause) {
	line := o.log.Info()
	switch {
	case cause == engine.Duplicate || cause == engine.NoSampling || cause == engine.Unreadable:
		line = o.log.Warn()
	case !o.verbose:
		return
	}
	text := "request failed on arrival"
	if finish == engine.Abort {
		text = "request aborted"
	}
	line.Str("request_id", r.ID).Str("finish_reason", finishReason(finish).String()).Str("reason", causes[cause]).Msg(text)
}
