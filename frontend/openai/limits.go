package openai

// Limits are what a server allows; a request is checked against them.
type Limits struct {
	MaxModelLen int // tokens of a prompt and its answer together
	ChatAnswer  int // tokens of the answer to a chat that doesn't say how many; 0 = as many as fit
	MaxLogprobs int // alternatives for each token; -1 = any number
	Vocabulary  int // token ids are below it
}

// MaxSequences bounds the answers that one request asks for: prompts times n. vLLM's limit of n alone is higher.
const MaxSequences = 2048

// MaxPromptTokens bounds the prompt tokens that one request sends to the engines: the tokens of all prompts times n.
const MaxPromptTokens = 1 << 24

// maxStops bounds each list of strings or tokens to stop at or to avoid.
const maxStops = 1 << 14
