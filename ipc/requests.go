package ipc

// The states of a request.
const (
	RequestWaiting   = "waiting"   // for a slot
	RequestRunning   = "running"   // holds a slot
	RequestCompleted = "completed" // ran to its stop condition
	RequestFailed    = "failed"    // ended with an error, an injected one or its own
	RequestAborted   = "aborted"   // by its client or a shutdown
)

// RequestStates are all of them, in the order in which a request can get there.
var RequestStates = []string{RequestWaiting, RequestRunning, RequestCompleted, RequestFailed, RequestAborted}

// RequestQuery says which requests are wanted: the newest of those that have a state of States and the id ID.
type RequestQuery struct {
	States []string `json:"states,omitempty"` // of [RequestStates]; none = any
	ID     string   `json:"id,omitempty"`     // the engine's or the client's, "" = any
	Limit  uint64   `json:"limit"`
}

// Request is what an engine knows of one request. It has no text and no token of it.
type Request struct {
	ID           string `json:"id"`
	ExternalID   string `json:"external_id,omitempty"` // by which the client knows it, "" = not told
	Client       uint64 `json:"client"`                // which of the frontend's API servers it came from
	State        string `json:"state"`
	FinishReason string `json:"finish_reason,omitempty"` // "" while it is unfinished
	Cause        string `json:"cause,omitempty"`         // why it ended early, "" = it did not
	PromptTokens uint64 `json:"prompt_tokens"`
	MaxTokens    uint64 `json:"max_tokens"`
	OutputTokens uint64 `json:"output_tokens"` // handed over so far
	LoRA         string `json:"lora,omitempty"`
	// Number is the place of its arrival among those of its process, from 1.
	Number uint64 `json:"number"`
	// Instants in ns since 1970, 0 = not yet or never.
	Arrived    int64 `json:"arrived"`
	Admitted   int64 `json:"admitted"`
	FirstToken int64 `json:"first_token"`
	Finished   int64 `json:"finished"`
}

// Requests are those that a query wants, newest arrival first, and as many as a frame holds.
type Requests struct {
	List    []Request `json:"list"`
	Matched uint64    `json:"matched"` // how many there are, shown or not
	Dropped uint64    `json:"dropped"` // finished ones that were forgotten
}
