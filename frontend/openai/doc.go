// Package openai is the language of the HTTP API: the requests of OpenAI's and vLLM's routes, what is allowed in them, the
// errors they are answered with, and the JSON of the answers.
//
// It guarantees:
//   - [Decode] takes any bytes: what is too deep or has too many values is refused before anything is allocated for it, and
//     every refusal is an [*Error] with a status and a text for the client;
//   - unknown fields are ignored, null means absent, and absent means vLLM's default;
//   - what Check of a request let pass needs no second look at ranges;
//   - answers have vLLM's fields, with null where vLLM writes null.
//
// It must never know about engines, tokenizers, sockets or HTTP servers: prompts are text or numbers here, and what they mean
// is decided by its user.
package openai
