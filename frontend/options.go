package frontend

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"vllm-vcr/frontend/metrics"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
)

// Options describe a server.
type Options struct {
	// Models are the names by which the model is served; the first is the one that answers tell. At least one.
	Models []string

	// Root is where the model comes from, as /v1/models tells it; "" = the first of Models.
	Root string

	// Version is the release of vLLM that is stood in for, whose line the engines speak.
	Version enginecore.Version

	// APIKeys are the bearer tokens of which one must come with calls of the API; none = all calls are taken.
	APIKeys []string

	// MaxModelLen is the most tokens of a prompt and its answer; 0 = what the engines registered with.
	MaxModelLen int

	// DefaultMaxTokens is the most tokens of the answer to a chat that doesn't say how many it wants, as the model's generation config
	// may have it with vLLM; 0 = as many as fit.
	DefaultMaxTokens int

	// MaxLogprobs is the most alternatives for each token that a request may ask for; 0 means 20, -1 any number.
	MaxLogprobs int

	// MaxBody is the most bytes of a request's body; 0 means 32 MiB.
	MaxBody int

	// RequestIDHeaders has answers repeat the X-Request-Id of their request, or tell one.
	RequestIDHeaders bool

	// Metrics is told of every call, and is what /metrics shows; nil = nobody, and no /metrics.
	Metrics Metrics

	// Log takes the server's lines; nil means none.
	Log *logs.Logger
}

// Metrics counts calls and shows what was counted: the metrics of package metrics. It may be called from any goroutine.
type Metrics interface {
	// HTTP tells of an answered call, before its last bytes leave.
	HTTP(metrics.Exchange)

	// SleepBegan tells that engines are being sent to sleep or woken, and the result that this has ended.
	SleepBegan(metrics.SleepOperation) (ended func())

	// Write writes all that was counted in Prometheus' text format.
	Write(io.Writer) error
}

const (
	defaultMaxBody     = 32 << 20
	defaultMaxLogprobs = 20
)

func (o *Options) check() error {
	var errs []error
	if len(o.Models) == 0 || strings.TrimSpace(o.Models[0]) == "" {
		errs = append(errs, errors.New("models: none, want at least one name"))
	}
	if o.MaxModelLen < 0 {
		errs = append(errs, fmt.Errorf("max-model-len: %d, want at least 0", o.MaxModelLen))
	}
	if o.DefaultMaxTokens < 0 {
		errs = append(errs, fmt.Errorf("default max_tokens: %d, want at least 0", o.DefaultMaxTokens))
	}
	if o.MaxLogprobs < -1 {
		errs = append(errs, fmt.Errorf("max-logprobs: %d, want at least -1", o.MaxLogprobs))
	}
	if o.MaxBody < 0 {
		errs = append(errs, fmt.Errorf("max-body: %d, want at least 0", o.MaxBody))
	}
	return errors.Join(errs...)
}

// settled is o with its defaults.
func (o Options) settled() Options {
	if o.Root == "" {
		o.Root = o.Models[0]
	}
	if o.MaxLogprobs == 0 {
		o.MaxLogprobs = defaultMaxLogprobs
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Log == nil {
		o.Log = logs.Nop()
	}
	return o
}
