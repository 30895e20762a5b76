package ipc

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/goccy/go-json"

	"vllm-vcr/config"
)

// Start is a supervisor's first frame: all that a worker needs, since its command line and environment carry nothing.
type Start struct {
	Magic      string        `json:"magic"`
	Version    int           `json:"version"`
	Config     config.Config `json:"config"`
	Index      int           `json:"index"`
	Generation uint64        `json:"generation"` // of the configuration
	LogFilter  string        `json:"log_filter"`
	LogFormat  int           `json:"log_format"` // a logs.Format
	// Addresses are where the worker before this one was connected, nil for the first: a frontend that has closed its
	// handshake may take the new one there.
	Addresses *Addresses `json:"addresses,omitempty"`
	// Faults are those that are armed.
	Faults []ArmedFault `json:"faults,omitempty"`
}

// Hello is a worker's first frame.
type Hello struct {
	Version int `json:"version"`
}

// Addresses are the data sockets of a frontend, from its INIT: input i and output i belong together.
type Addresses struct {
	Inputs            []string `json:"inputs"`
	Outputs           []string `json:"outputs"`
	CoordinatorInput  string   `json:"coordinator_input,omitempty"`
	CoordinatorOutput string   `json:"coordinator_output,omitempty"`
}

// The states a worker reports of itself.
const (
	StateStarting     = "starting"     // joins its frontend for the first time
	StateReady        = "ready"        // connected and registered
	StateReconnecting = "reconnecting" // lost its frontend and looks for it
	StateDraining     = "draining"     // takes no new requests, finishes the running ones
	StateDrained      = "drained"      // has left its frontend after a drain, and can still be asked
	StateListening    = "listening"    // a front end's: its sockets are open
)

// State is a worker's account of itself.
type State struct {
	State string `json:"state"`
	// Addresses are set with StateReady.
	Addresses *Addresses `json:"addresses,omitempty"`
	// Handshake is where a front end waits for engines, HTTP where it serves; both are set with StateListening.
	Handshake string `json:"handshake,omitempty"`
	HTTP      string `json:"http,omitempty"`
	// Joined says how the worker came to be ready: "handshake" or "predecessor's addresses".
	Joined string `json:"joined,omitempty"`
}

// The operations of a Call.
const (
	OpPing     = "ping"     // answered from the engine's loop: proof that it turns
	OpConfig   = "config"   // answered with Config
	OpStats    = "stats"    // answered with Stats
	OpRequests = "requests" // answered with Requests, those that Query wants
	OpPrepare  = "prepare"  // round one of a change: checks and keeps it, changes nothing
	OpCommit   = "commit"   // round two: applies what was prepared under Change; answered with Config
	OpAbort    = "abort"    // forgets what was prepared under Change
	OpLog      = "log"      // replaces the log filter
	OpDrain    = "drain"    // drain for Timeout seconds, then abort what is left and leave, unless Stay; answered with Drain
)

// Call is one thing a supervisor wants of a worker.
type Call struct {
	Op         string        `json:"op"`
	Change     uint64        `json:"change,omitempty"` // number of a change, for prepare, commit and abort
	Patch      config.Patch  `json:"patch,omitempty"`
	ResetStats bool          `json:"reset_stats,omitempty"` // the change is a reset of the counters
	Arm        *ArmedFault   `json:"arm,omitempty"`         // the change is a new fault
	Disarm     []uint64      `json:"disarm,omitempty"`      // the change takes these faults back; comes with the commit too
	Filter     string        `json:"filter,omitempty"`
	Timeout    uint64        `json:"timeout,omitempty"` // s
	Stay       bool          `json:"stay,omitempty"`    // after a drain leave the frontend only, and go on answering calls
	Query      *RequestQuery `json:"query,omitempty"`
}

// Answer is a worker's reply.
type Answer struct {
	// Refused is why a prepare was refused because of what the worker is using, "" where it was not.
	Refused string       `json:"refused,omitempty"`
	Config  *config.Live `json:"config,omitempty"`
	Stats   *Stats       `json:"stats,omitempty"`
	// Drain is what a drain has begun with.
	Drain    *Drain    `json:"drain,omitempty"`
	Requests *Requests `json:"requests,omitempty"`
}

// Drain tells of a drain, of one engine or of several.
type Drain struct {
	Unfinished uint64 `json:"unfinished"` // requests that ran or waited
	Timeout    uint64 `json:"timeout"`    // s until what is left of them is aborted: less than was asked for where an earlier drain is under way
}

// WholeSeconds rounds d up: what has not passed is not over. A d below zero has passed.
func WholeSeconds(d time.Duration) uint64 {
	return uint64(math.Ceil(max(0, d).Seconds()))
}

// Stats counts the requests of one engine, or of several added up. The first four count since the last reset.
type Stats struct {
	Received  uint64 `json:"requests_received"`
	Completed uint64 `json:"requests_completed"`
	Failed    uint64 `json:"requests_failed"`
	Aborted   uint64 `json:"requests_aborted"`
	Running   uint64 `json:"running"`
	Waiting   uint64 `json:"waiting"`
}

// Add returns the sum of s and o.
func (s Stats) Add(o Stats) Stats {
	s.Received += o.Received
	s.Completed += o.Completed
	s.Failed += o.Failed
	s.Aborted += o.Aborted
	s.Running += o.Running
	s.Waiting += o.Waiting
	return s
}

// Append appends a whole frame of the given kind whose body is the JSON form of body. A body that is too large for a frame
// is an [ErrFrameSize]; b is returned as it was then.
func Append(b []byte, kind Kind, call uint64, body any) ([]byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return b, fmt.Errorf("%T: %w", body, err)
	}
	if len(raw)+headerSize > MaxFrame {
		return b, fmt.Errorf("%w: %T of %d bytes, want at most %d", ErrFrameSize, body, len(raw), MaxFrame-headerSize)
	}
	return AppendFrame(b, Frame{Kind: kind, Call: call, Body: raw}), nil
}

// Decode reads f's body into body, a pointer to the type that f's kind calls for. Nothing in body aliases f.
func (f Frame) Decode(body any) error {
	if err := json.Unmarshal(f.Body, body); err != nil {
		return fmt.Errorf("frame kind %d: %T: %w", f.Kind, body, err)
	}
	return nil
}

// Check says whether s comes from a supervisor that this worker can serve.
func (s Start) Check() error {
	if s.Magic != Magic {
		return fmt.Errorf("start: %w: magic %q, want %q", ErrVersion, s.Magic, Magic)
	}
	if s.Version != Version {
		return fmt.Errorf("start: %w: the supervisor speaks version %d, this worker %d", ErrVersion, s.Version, Version)
	}
	return nil
}

// ReadStart reads the first frame of a supervisor, which says everything that a process of it has to know.
func ReadStart(r io.Reader) (Start, error) {
	var s Start
	f, _, err := ReadFrame(r, nil)
	switch {
	case err != nil:
		return s, fmt.Errorf("start: %w", err)
	case f.Kind != KindStart:
		return s, fmt.Errorf("start: frame kind %d, want %d", f.Kind, KindStart)
	}
	if err := f.Decode(&s); err != nil {
		return s, err
	}
	return s, s.Check()
}

// Check says whether h comes from a worker that this supervisor can use.
func (h Hello) Check() error {
	if h.Version != Version {
		return fmt.Errorf("hello: %w: the worker speaks version %d, this supervisor %d", ErrVersion, h.Version, Version)
	}
	return nil
}

// Check says whether s is one of the states a worker or a front end may report.
func (s State) Check() error {
	switch s.State {
	case StateStarting, StateReady, StateReconnecting, StateDraining, StateDrained, StateListening:
		return nil
	}
	return fmt.Errorf("state %q, want %s, %s, %s, %s, %s or %s", s.State, StateStarting, StateReady, StateReconnecting, StateDraining, StateDrained, StateListening)
}
