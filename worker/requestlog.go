package worker

import (
	"github.com/rs/zerolog"

	"vllm-vcr/worker/engine"
)

// line begins a line about one request: at info with log_requests, else at debug.
func (o *outputs) line(r *engine.Request) *zerolog.Event {
	if o.verbose {
		return o.log.Info().Str("request_id", r.ID)
	}
	return o.log.Debug().Str("request_id", r.ID)
}

// Admit implements engine.Sink.
func (o *outputs) Admit(r *engine.Request) {
	o.line(r).Uint64("prompt_len", r.PromptTokens).Uint64("max_tokens", r.MaxTokens).Msg("request started")
}

// Queued implements engine.Sink.
func (o *outputs) Queued(r *engine.Request) { o.line(r).Msg("request queued") }

func (o *outputs) logFinished(r *engine.Request, finish engine.Finish) {
	o.line(r).Uint64("prompt_len", r.PromptTokens).Uint64("output_tokens", r.Emitted()).
		Str("finish_reason", finishReason(finish).String()).Msg("request finished")
}

// logStep tells of every step that handed something over.
func (o *outputs) logStep(l load) {
	o.log.Trace().Uint64("step", o.steps).Uint64("running", l.running).Uint64("waiting", l.waiting).Msg("step")
}

// causes words why a request ended early.
var causes = map[engine.Cause]string{
	engine.Duplicate:      "duplicate request id",
	engine.TooLong:        "prompt and output exceed max_model_len",
	engine.Injected:       "failure injection",
	engine.NoSampling:     "no sampling parameters",
	engine.UnknownAdapter: "LoRA adapter not loaded",
	engine.NothingToDo:    "max_tokens is 0",
	engine.Aborted:        "aborted by the frontend",
	engine.ShuttingDown:   "shutting down",
	engine.PausedByClient: "generation is paused",
	engine.Unreadable:     "request could not be read",
	engine.BadArgument:    "bad argument",
}

// unusual are the causes that are likely somebody's mistake.
var unusual = map[engine.Cause]bool{
	engine.Duplicate: true, engine.NoSampling: true, engine.UnknownAdapter: true, engine.Unreadable: true, engine.BadArgument: true,
}

// logEnd tells of what is likely somebody's mistake even where requests are not logged.
func (o *outputs) logEnd(r *engine.Request, finish engine.Finish, cause engine.Cause) {
	line := o.line(r)
	if unusual[cause] {
		line = o.log.Warn().Str("request_id", r.ID)
	}
	text := "request failed on arrival"
	switch {
	case finish == engine.Abort:
		text = "request aborted"
	case r.Emitted() > 0:
		text = "request failed"
		line = line.Uint64("output_tokens", r.Emitted())
	}
	line.Str("finish_reason", finishReason(finish).String()).Str("reason", causes[cause]).Msg(text)
}
