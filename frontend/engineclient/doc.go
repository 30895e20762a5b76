// Package engineclient is the frontend's end of vLLM's engine-core protocol: it owns the address at which engines say
// HELLO and the data sockets behind it, waits for a fixed number of engines, sends them requests, and hands out what they
// answer.
//
// It guarantees:
//   - an engine is up once it said READY at the handshake and registered at every input, and is sent nothing before it
//     registered;
//   - outputs of one engine to one client are handed out in the order in which they were sent, one at a time, on a goroutine
//     of their connection; different engines don't wait for each other;
//   - a bad message costs that message or its connection, and is told; it never ends the frontend or another connection;
//   - an engine that goes is told, once all has been handed out that it said before, at most half a second later; one that
//     comes back with the same identity is taken again, with a new handshake or without one;
//   - Close leaves no goroutine and no socket file.
//
// It must never know about HTTP, text, tokenizers, or which engine a request should go to: its callers choose the engine.
//
// # Sockets
//
//	handshake      engine DEALER → ours    HELLO → INIT → READY; the identity is the rank, 2 bytes, little-endian
//	input i        engine DEALER → ours    the registration comes, then ADD, ABORT and UTILITY go; same identity
//	output i       engine PUSH   → ours    EngineCoreOutputs, or the single frame ENGINE_CORE_DEAD
//	coordinator    engine XSUB   → ours    READY once every engine has subscribed, START_DP_WAVE
//	               engine PUSH   → ours    EngineCoreOutputs with scheduler stats or a wave's start or end
//
// There is one input and one output for each client, vLLM's word for an API server process: client_index in an ADD or a
// UTILITY names the output that the answer is to come over.
package engineclient
