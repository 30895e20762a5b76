// Package config is the one table of vllm-vcr's options: it gives every setting its flag, environment variable, range,
// help text and, where a running engine can change it, its JSON key.
//
// The command line, the frames to a worker, the control API and the documentation all read this table, so a setting is
// added in one place. The package holds plain data and judges it; it must never know what a setting does, nor read the
// environment, a file or a flag itself.
package config

import (
	"errors"
	"fmt"
	"time"
)

// Config is everything that one `vllm-vcr play` is started with. It is plain data: copy it with [Config.Clone], send it
// as JSON. Options that are only uint64 numbers keep the unit of their flag, which the field's comment names.
type Config struct {
	HandshakeAddress     string          `json:"handshake_address"`        // tcp:// or ipc://, where the frontend's ROUTER waits
	EngineCount          uint64          `json:"engine_count"`             // workers, 1 … 65536
	StartRank            uint64          `json:"data_parallel_start_rank"` // rank of engine 0; rank = StartRank + index ≤ 65535
	VLLMVersion          string          `json:"vllm_version"`             // line of vLLM to speak; see enginecore.ParseVersion
	EngineID             string          `json:"engine_id"`                // instance id; engine i > 0 appends "-i"
	OnFrontendLoss       string          `json:"on_frontend_loss"`         // LossReconnect or LossExit
	OutputTokenChunkSize uint64          `json:"output_token_chunk_size"`  // tokens in one output, at least 1
	VocabSize            uint64          `json:"vocab_size"`               // token ids are below it, 1 … 2^32-1
	Seed                 uint64          `json:"seed"`                     // of every random stream
	LongPrefillThreshold uint64          `json:"long_prefill_token_threshold"`
	SchedulingPolicy     string          `json:"scheduling_policy"`    // PolicyFCFS or PolicyPriority
	TokenSource          string          `json:"token_source"`         // TokensText, TokensRandom or TokensEcho
	MaxLoras             uint64          `json:"max_loras"`            // LoRA adapters in use at once, 0 = no limit
	TokensPerBlock       uint64          `json:"tokens_per_block"`     // advertised block size
	KVCacheSize          uint64          `json:"kv_cache_size"`        // advertised blocks
	LatencyTrace         string          `json:"latency_trace"`        // JSONL file; "" = the timing settings of Live
	ExpectConfigHash     string          `json:"expect_config_hash"`   // "" = no check
	TimeScale            float64         `json:"time_scale"`           // every simulated duration is divided by it, above 0
	StepGranularity      time.Duration   `json:"step_granularity"`     // grid of leave times, 0 = off
	ShutdownTimeout      uint64          `json:"shutdown_timeout"`     // s of draining before the rest is aborted
	StartupTimeout       uint64          `json:"startup_timeout"`      // s until every engine must be ready, 0 = for ever
	Restart              string          `json:"restart"`              // RestartNever or RestartOnFailure
	AnnounceDeath        bool            `json:"announce_death"`       // tell the frontend ENGINE_CORE_DEAD for a dead worker
	ControlAddress       string          `json:"control_address"`      // HOST:PORT or unix:PATH; "" = no control API
	ControlTimeout       uint64          `json:"control_timeout"`      // s until a control call is answered with 504
	ControlTokenFile     string          `json:"control_token_file"`   // file that holds a bearer token; "" = none asked
	ControlSSLCertFile   string          `json:"control_ssl_certfile"` // PEM; "" = no TLS
	ControlSSLKeyFile    string          `json:"control_ssl_keyfile"`  // PEM; "" = in the certificate's file
	RequestJournal       uint64          `json:"request_journal"`      // finished requests that an engine remembers, 0 = none
	LogFormat            string          `json:"log_format"`           // LogAuto, LogJSON or LogText
	OpenAI               `json:"openai"` // the front end of serve and frontend
	Live                 `json:"live"`   // what a PATCH can change
}

// OpenAI is the settings of our own OpenAI-compatible front end. Its names are vLLM's.
type OpenAI struct {
	Host                   string   `json:"host"`                      // address to listen on
	Port                   uint64   `json:"port"`                      // 0 = any free one
	Model                  string   `json:"model"`                     // any name; nothing is loaded
	ServedModelName        []string `json:"served_model_name"`         // names that clients may use; none = Model
	APIKey                 []string `json:"api_key"`                   // bearer tokens of which calls need one; none = all are taken
	MaxNewTokens           uint64   `json:"max_new_tokens"`            // of an answer that a chat sets no limit to; 0 = what the context holds
	MaxLogprobs            uint64   `json:"max_logprobs"`              // most alternatives that a request may ask for
	MaxBodySize            uint64   `json:"max_body_size"`             // bytes of a request's body
	EnableRequestIDHeaders bool     `json:"enable_request_id_headers"` // answer with X-Request-Id
	SSLCertFile            string   `json:"ssl_certfile"`              // PEM; "" = no TLS
	SSLKeyFile             string   `json:"ssl_keyfile"`               // PEM; "" = in the certificate's file
}

// Live is the settings that a PATCH changes while engines run. Its JSON form, in this order, is what GET /config answers.
type Live struct {
	TimeToFirstToken       uint64   `json:"time_to_first_token"`         // ms
	TimeToFirstTokenStdDev uint64   `json:"time_to_first_token_std_dev"` // ms
	InterTokenLatency      uint64   `json:"inter_token_latency"`         // ms
	InterTokenStdDev       uint64   `json:"inter_token_latency_std_dev"` // ms
	PrefillOverhead        uint64   `json:"prefill_overhead"`            // ms
	PrefillTimePerToken    uint64   `json:"prefill_time_per_token"`      // ms
	PrefillTimeStdDev      uint64   `json:"prefill_time_std_dev"`        // ms
	TimeFactorUnderLoad    float64  `json:"time_factor_under_load"`      // at least 1
	MaxNumSeqs             uint64   `json:"max_num_seqs"`                // requests running at once, at least 1
	MaxNumBatchedTokens    uint64   `json:"max_num_batched_tokens"`      // tokens of one step, at least 1
	MaxModelLen            uint64   `json:"max_model_len"`               // prompt + output tokens, 0 = no check
	FailureInjectionRate   float64  `json:"failure_injection_rate"`      // share of arrivals that fail, 0 … 1
	FailureTypes           []string `json:"failure_types"`               // FailError, FailLength, FailRepetition; repeats act as weights
	LogRequests            bool     `json:"log_requests"`                // one line for each request's start, end and failure
}

// The words that options with a fixed choice take.
const (
	LossReconnect    = "reconnect"
	LossExit         = "exit"
	PolicyFCFS       = "fcfs"
	PolicyPriority   = "priority"
	RestartNever     = "never"
	RestartOnFailure = "on-failure"
	LogAuto          = "auto"
	LogJSON          = "json"
	LogText          = "text"
	TokensText       = "text"
	TokensRandom     = "random"
	TokensEcho       = "echo"
	FailError        = "error"
	FailLength       = "length"
	FailRepetition   = "repetition"
)

// MaxRank is the largest rank: the routing id of an engine is its rank in two bytes.
const MaxRank = 65535

// Default returns the configuration of `vllm-vcr play` without any flag.
func Default() Config {
	return Config{
		HandshakeAddress:     "tcp://127.0.0.1:29550",
		EngineCount:          1,
		VLLMVersion:          "0.33",
		EngineID:             "mock-engine-0",
		OnFrontendLoss:       LossReconnect,
		OutputTokenChunkSize: 1,
		VocabSize:            32000,
		TokenSource:          TokensRandom,
		SchedulingPolicy:     PolicyFCFS,
		TokensPerBlock:       16,
		KVCacheSize:          1024,
		TimeScale:            1,
		StepGranularity:      100 * time.Microsecond,
		StartupTimeout:       300,
		Restart:              RestartNever,
		ControlTimeout:       5,
		RequestJournal:       1024,
		LogFormat:            LogAuto,
		OpenAI: OpenAI{
			Host: "127.0.0.1", Port: 8000, Model: "vllm-vcr", MaxNewTokens: 256, MaxLogprobs: 20, MaxBodySize: 32 << 20,
		},
		Live: Live{
			TimeFactorUnderLoad: 1,
			MaxNumSeqs:          128,
			MaxNumBatchedTokens: 2048,
			FailureTypes:        []string{FailError},
		},
	}
}

// Clone returns a copy that shares no memory with c.
func (c Config) Clone() Config {
	c.Live = c.Live.Clone()
	c.ServedModelName = append([]string(nil), c.ServedModelName...)
	c.APIKey = append([]string(nil), c.APIKey...)
	return c
}

// Clone returns a copy that shares no memory with l.
func (l Live) Clone() Live {
	l.FailureTypes = append([]string{}, l.FailureTypes...)
	return l
}

// Validate reports every fault of c at once, joined: each names the flag, the value and what is allowed. It looks at the
// values only; files and addresses are opened by their users.
func (c Config) Validate() error {
	var faults []error
	for _, o := range Options() {
		if err := o.Value(&c).Check(); err != nil {
			faults = append(faults, o.Fault(o.Value(&c).String(), err))
		}
	}
	return errors.Join(append(faults, c.conflicts()...)...)
}

// conflicts are the rules between options.
func (c Config) conflicts() []error {
	var faults []error
	if c.EngineCount > 0 && c.EngineCount <= MaxRank+1 && c.StartRank <= MaxRank && c.StartRank+c.EngineCount-1 > MaxRank {
		faults = append(faults, fmt.Errorf("--data-parallel-start-rank: %d with --engine-count %d makes rank %d, want at most %d",
			c.StartRank, c.EngineCount, c.StartRank+c.EngineCount-1, MaxRank))
	}
	if c.SSLKeyFile != "" && c.SSLCertFile == "" {
		faults = append(faults, loneKey("ssl", c.SSLKeyFile))
	}
	if c.ControlSSLKeyFile != "" && c.ControlSSLCertFile == "" {
		faults = append(faults, loneKey("control-ssl", c.ControlSSLKeyFile))
	}
	if c.LatencyTrace == "" {
		return faults
	}
	fresh := Default()
	for _, o := range Options() {
		if o.Timing && !o.WithTrace && o.Value(&c).String() != o.Value(&fresh).String() {
			faults = append(faults, fmt.Errorf("--%s: %s cannot go with --latency-trace, which brings its own timing: remove one of them",
				o.Flag, o.Value(&c)))
		}
	}
	return faults
}

func loneKey(prefix, file string) error {
	return fmt.Errorf("--%s-keyfile: %q without --%s-certfile, want both", prefix, file, prefix)
}
