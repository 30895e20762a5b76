// Package enginecore encodes and decodes the messages that a vLLM frontend and its engine cores exchange (vLLM's "V1 engine-core
// protocol"), for the release lines 0.25 to 0.33 and in both directions.
//
// It guarantees:
//   - encoders cannot fail, never write more elements than the chosen line knows, and on the output path do not allocate once warm;
//   - decoders take any length from the required minimum upwards, skip what they do not know, read nil as the default, and
//     allocate at most what the bytes at hand or a limit of this package ([MaxPromptTokens], [MaxItems], [MaxOutputs]) allow;
//   - a decode error names the message, the field and the lengths; it never panics, and nested input costs no stack.
//
// It must never know about sockets, frames' identities, clocks or what an engine does with a request: bytes in, values out.
// Nothing here starts a goroutine, and no value is safe for use by two at once.
//
// Where a decoded value holds a [github.com/tinylib/msgp/msgp.Raw] or a []byte, it aliases the decoded bytes and is valid as long
// as they are; strings and token lists are copies.
//
// # Messages
//
// Engine to frontend at the handshake address, and back:
//
//	HELLO, READY   map {status, local, headless, parallel_config_hash?}   [Hello]
//	INIT           map {addresses {…}, parallel_config {…}}               [Init]
//
// On the data input sockets; the engine speaks once, then only listens:
//
//	registration   map                                                    [ReadyResponse]
//	00 ADD         array of 20, from 0.33 on 22                           [Request]
//	01 ABORT       array of request ids                                   [DecodeAbort]
//	02 START_DP_WAVE  [wave, exclude]; from the coordinator's socket      [StartWave]
//	03 UTILITY     [client_index, call_id, method, args]                  [UtilityCall]
//
// On the output sockets, and to the coordinator:
//
//	EngineCoreOutputs  array of 8, from 0.33 on 9                         [Batch], [Outputs]
//	ENGINE_CORE_DEAD   16 bytes of ASCII, no msgpack                      [EngineCoreDead]
package enginecore

// The type byte that is frame 0 of every message to an engine; frame 1 is the payload.
const (
	FrameAdd       byte = 0
	FrameAbort     byte = 1
	FrameStartWave byte = 2
	FrameUtility   byte = 3
)

// EngineCoreDead is the single frame that an engine sends on every output socket when it ends by a fatal error.
const EngineCoreDead = "ENGINE_CORE_DEAD"

// Limits on what one decoded message may make us allocate.
const (
	MaxPromptTokens = 1 << 24 // tokens of one prompt, or of one output
	MaxItems        = 1 << 20 // elements of any other list
	MaxOutputs      = 1 << 16 // requests in one EngineCoreOutputs
)

// CoordinatorReady is the single frame by which a coordinator tells its engines that all have subscribed.
const CoordinatorReady = "READY"
