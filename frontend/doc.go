// Package frontend is the OpenAI-compatible HTTP server over the engines: it turns requests into tokens and sampling
// parameters, tokens into text and events, and everything that goes wrong into an answer in vLLM's shape.
//
// It guarantees:
//   - every answer but a stream's, the metrics and the empty ones is JSON, and every error is {"error":{…}} with the status of
//     the answer as its code;
//   - the status of an answer is decided by the first output of the engine: no header leaves before it, and an error that comes
//     first is an error's status;
//   - a stream ends with "data: [DONE]" if and only if its answer is complete or the engine itself ended it with an error; when
//     the engine has died there is an event with the error, and the connection is cut;
//   - a client that goes, by closing, resetting or half-closing its connection, has its requests aborted at once, also before
//     the first token;
//   - a request costs one goroutine that waits for its client to go, and nothing for each token but the write of its bytes.
//
// It must never know how engines are reached or chosen: it sees them as [Engines].
//
// # A stream
//
// fasthttp pulls: the goroutine of the connection asks the body for its next bytes, the body waits for the engine's next output,
// formats what there is and hands it over, and fasthttp writes it in one piece. Nothing is queued on this side; what a client
// doesn't read stays with its stream in package dispatch.
package frontend
