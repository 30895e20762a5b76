package frontend

import (
	"context"
	"errors"
	"net/http"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/protocol/enginecore"
)

var (
	// errGone ends what was done for a client that has left.
	errGone = errors.New("the client has gone")

	// errStopped ends what is still running when a stopping server's patience is over.
	errStopped = errors.New("the server is stopping")
)

// failure is the one place where errors become answers.
func failure(err error) *openai.Error {
	var own *openai.Error
	var dead *dispatch.EngineDeadError
	var refused *engineclient.CallError
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, errGone):
		return &openai.Error{Message: err.Error(), Type: openai.TypeBadRequest, Status: statusGone}
	case errors.Is(err, errStopped), errors.Is(err, dispatch.ErrClosed):
		return openai.Unavailable("The server is shutting down.")
	case errors.Is(err, dispatch.ErrRank):
		return openai.BadRequest(rankHeader, "%v", err)
	case errors.Is(err, dispatch.ErrNoEngine):
		return openai.Unavailable("No engine is there to take the request: %v", err)
	case errors.As(err, &dead):
		return openai.Internal("The server had an error while processing your request: %v", dead)
	case errors.As(err, &refused):
		return openai.Internal("%v", refused)
	case errors.Is(err, context.DeadlineExceeded):
		return &openai.Error{Message: "An engine did not answer in time.", Type: openai.TypeInternal, Status: http.StatusGatewayTimeout}
	default:
		return openai.Internal("Internal server error: %v", err)
	}
}

// statusGone is what nginx logs for a client that left; no client sees it.
const statusGone = 499

// engineFailure is the answer to a request that an engine ended with an error.
func engineFailure(e *enginecore.RequestError) *openai.Error {
	switch {
	case e == nil || e.Message == "":
		return openai.Internal("Internal server error")
	case e.Code == "validation_error":
		return openai.BadRequest("", "%s", e.Message)
	case e.Code == "engine_paused", e.Retryable:
		return openai.Unavailable("%s", e.Message)
	default:
		return openai.Internal("%s", e.Message)
	}
}

// isClean says whether a stream that failed ends as one that is complete: the engine is alive and said all there was to say.
func isClean(err error) bool {
	var own *openai.Error
	return errors.As(err, &own)
}

// adapterFailure is the answer to a call that could not load or unload an adapter.
func adapterFailure(name string, err error) error {
	switch {
	case errors.Is(err, dispatch.ErrLoRALoaded):
		return openai.BadRequest("lora_name", "The lora adapter '%s' has already been loaded.", name)
	case errors.Is(err, dispatch.ErrLoRAUnknown):
		return openai.NotFound("lora_name", "The lora adapter '%s' cannot be found.", name)
	}
	return err
}
