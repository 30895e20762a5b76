// Package dispatch brings requests to engines and their outputs back to whoever asked: it chooses the engine, tells the
// streams of one apart, and ends every one of them exactly once, whatever happens first of its end at the engine, a cancel and
// the engine's death.
//
// It guarantees:
//   - outputs of a request reach its [Stream] complete and in order. Nothing waits for the stream's consumer: what it has not
//     taken yet is kept, 4 bytes for each token and, where asked for, 8 for each log probability, so that a slow one costs the
//     memory of its own request's answer and delays nobody;
//   - a request is sent to a living engine or refused at once with [ErrNoEngine]. The streams of an engine that is lost, or that
//     says it is dead, end with an [EngineDeadError] at once;
//   - an ABORT is sent once for a stream that is given up here, and never for one that the engine ended;
//   - the [Observer] has been told of an output, and of an end, before the consumer can see it;
//   - Close leaves no goroutine and ends every stream.
//
// It must never know about HTTP, text, tokenizers, or what a token means.
//
// # Choice of an engine
//
// As vLLM's internal balancer: the lowest of 4 × waiting + running wins, by the engine's latest scheduler stats, where every
// request that was sent since those counts as waiting. Equal ones take turns. A request may ask for a rank.
//
// # Locks
//
// An engine's delivery lock comes first, then the registry of adapters, an engine's, a stream's and the balancer's; the observer
// is called under the first at most.
package dispatch
