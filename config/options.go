package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"vllm-vcr/protocol/enginecore"
)

// Option is one row of the table: one setting, everywhere it shows.
type Option struct {
	Flag  string // as typed after "--"
	Env   string // environment variable consulted where the flag is not given
	Group string // heading in --help
	Help  string // one sentence: effect, unit, what zero means
	// For are the commands that take it.
	For Commands
	// Live options can be changed by a PATCH under Key.
	Live bool
	// Timing options are what a latency trace replaces: a PATCH that names one while a trace is in use is a conflict.
	Timing bool
	// WithTrace marks the Timing options that may stand beside a trace at start: they are limits or factors, not times.
	WithTrace bool
	// Value points into the Config given to it: setting the one changes the other.
	Value func(*Config) Value
}

// Key is the option's JSON key: its flag with underscores.
func (o Option) Key() string { return strings.ReplaceAll(o.Flag, "-", "_") }

// Fault words an error of this option for the command line: the flag, the text given and what is allowed.
func (o Option) Fault(text string, err error) error {
	return fmt.Errorf("--%s: %q: %w", o.Flag, text, err)
}

// Commands is a set of commands.
type Commands uint8

// The commands that take options.
const (
	Play Commands = 1 << iota
	Serve
	Frontend

	engines    = Play | Serve
	frontEnds  = Serve | Frontend
	everywhere = Play | Serve | Frontend
)

// The headings of --help, in their order.
const (
	GroupOpenAI    = "OpenAI API"
	GroupFrontend  = "Frontend"
	GroupEngine    = "Engine"
	GroupScheduler = "Scheduler"
	GroupTiming    = "Timing"
	GroupFailures  = "Failures"
	GroupControl   = "Control API"
	GroupProcess   = "Processes and logs"
)

const (
	maxUint    = math.MaxUint64
	maxSeconds = 1 << 32 // keeps a number of seconds inside a time.Duration
)

// Options returns the table, in the order of --help. The rows are shared: do not change them.
func Options() []Option { return table }

// OptionsFor returns the rows of one command, likewise.
func OptionsFor(c Commands) []Option {
	return slices.DeleteFunc(slices.Clone(table), func(o Option) bool { return o.For&c == 0 })
}

// LiveOption returns the row whose JSON key is exactly key, if a PATCH can change it.
func LiveOption(key string) (Option, bool) {
	for _, o := range table {
		if o.Live && o.Key() == key {
			return o, true
		}
	}
	return Option{}, false
}

// LiveKeys returns the keys that a PATCH can change, in the order of the table.
func LiveKeys() []string {
	var keys []string
	for _, o := range table {
		if o.Live {
			keys = append(keys, o.Key())
		}
	}
	return keys
}

// maxJournal keeps a journal at some 10 MB.
const maxJournal = 1 << 16

// maxChunk keeps one output far below what a message may hold.
const maxChunk = 4096

var table = complete([]Option{
	{Flag: "host", Group: GroupOpenAI, For: frontEnds, Help: "address that the OpenAI API listens on; 0.0.0.0 is every one",
		Value: func(c *Config) Value { return text(&c.Host) }},
	{Flag: "port", Group: GroupOpenAI, For: frontEnds, Help: "port of the OpenAI API; 0 = any free one, told in the log",
		Value: func(c *Config) Value { return number(&c.Port, 0, 65535) }},
	{Flag: "model", Group: GroupOpenAI, For: frontEnds, Help: "name of the model; any will do, nothing is loaded",
		Value: func(c *Config) Value { return parsed(&c.Model, "a name", isName) }},
	{Flag: "served-model-name", Group: GroupOpenAI, For: frontEnds, Help: "names by which clients may ask for the model, the first is the one that answers tell; none = its own",
		Value: func(c *Config) Value { return names(&c.ServedModelName) }},
	{Flag: "api-key", Env: "VLLM_API_KEY", Group: GroupOpenAI, For: frontEnds, Help: "bearer tokens of which a call must bring one; none = every call is taken",
		Value: func(c *Config) Value { return names(&c.APIKey) }},
	{Flag: "max-new-tokens", Group: GroupOpenAI, For: frontEnds, Help: "tokens of an answer that a chat sets no limit to; 0 = what the context holds",
		Value: func(c *Config) Value { return number(&c.MaxNewTokens, 0, math.MaxInt32) }},
	{Flag: "max-logprobs", Group: GroupOpenAI, For: frontEnds, Help: "alternatives for each token that a request may ask for at most",
		Value: func(c *Config) Value { return number(&c.MaxLogprobs, 0, 1<<17) }},
	{Flag: "max-body-size", Group: GroupOpenAI, For: frontEnds, Help: "bytes of a request's body at most",
		Value: func(c *Config) Value { return number(&c.MaxBodySize, 1, 1<<30) }},
	{Flag: "enable-request-id-headers", Group: GroupOpenAI, For: frontEnds, Help: "answer with the X-Request-Id of the request, or tell one",
		Value: func(c *Config) Value { return toggle(&c.EnableRequestIDHeaders) }},
	{Flag: "ssl-certfile", Group: GroupOpenAI, For: frontEnds, Help: "PEM file of the certificate and those above it, for HTTPS; read again when it changes; none = HTTP",
		Value: func(c *Config) Value { return text(&c.SSLCertFile) }},
	{Flag: "ssl-keyfile", Group: GroupOpenAI, For: frontEnds, Help: "PEM file of its private key; none = it is in the certificate's file",
		Value: func(c *Config) Value { return text(&c.SSLKeyFile) }},

	{Flag: "handshake-address", For: everywhere, Group: GroupFrontend, Help: "where the frontend's handshake socket waits, tcp://HOST:PORT or ipc:///PATH",
		Value: func(c *Config) Value { return parsed(&c.HandshakeAddress, allowedHandshake, isHandshake) }},
	{Flag: "engine-count", For: everywhere, Group: GroupFrontend, Help: "engines to run, each in a worker process of its own",
		Value: func(c *Config) Value { return number(&c.EngineCount, 1, MaxRank+1) }},
	{Flag: "data-parallel-start-rank", Group: GroupFrontend, Help: "rank of the first engine, where several hosts serve one frontend",
		Value: func(c *Config) Value { return number(&c.StartRank, 0, MaxRank) }},
	{Flag: "vllm-version", For: everywhere, Group: GroupFrontend, Help: "vLLM release line that the frontend speaks",
		Value: func(c *Config) Value { return parsed(&c.VLLMVersion, allowedVersion, isVersion) }},
	{Flag: "engine-id", Env: "MOCK_ENGINE_ID", Group: GroupFrontend, Help: "instance id told to the frontend; engine i > 0 appends -i",
		Value: func(c *Config) Value { return text(&c.EngineID) }},
	{Flag: "on-frontend-loss", Group: GroupFrontend, Help: "when the frontend goes away: join again, or exit with code 1",
		Value: func(c *Config) Value { return choice(&c.OnFrontendLoss, LossReconnect, LossExit) }},

	{Flag: "output-token-chunk-size", Group: GroupEngine, Help: "tokens in one output; one inter-token latency pays for the whole chunk",
		Value: func(c *Config) Value { return number(&c.OutputTokenChunkSize, 1, maxChunk) }},
	{Flag: "vocab-size", Group: GroupEngine, Help: "output token ids are drawn below this number",
		Value: func(c *Config) Value { return number(&c.VocabSize, 1, math.MaxUint32) }},
	{Flag: "token-source", Group: GroupEngine, Help: "what answers are made of: readable text, random ids, or the prompt's own over and over",
		Value: func(c *Config) Value { return choice(&c.TokenSource, TokensText, TokensRandom, TokensEcho) }},
	{Flag: "seed", Group: GroupEngine, Help: "seed of every random stream; same seed, rank and request id give the same tokens",
		Value: func(c *Config) Value { return number(&c.Seed, 0, maxUint) }},
	{Flag: "tokens-per-block", Env: "MOCK_TOKENS_PER_BLOCK", Group: GroupEngine, Help: "tokens of a KV block, told to the frontend",
		Value: func(c *Config) Value { return number(&c.TokensPerBlock, 1, math.MaxUint32) }},
	{Flag: "kv-cache-size", Env: "MOCK_KV_CACHE_SIZE", Group: GroupEngine, Help: "KV blocks of an engine, told to the frontend",
		Value: func(c *Config) Value { return number(&c.KVCacheSize, 1, math.MaxUint32) }},
	{Flag: "max-model-len", For: everywhere, Env: "MOCK_MAX_MODEL_LEN", Group: GroupEngine, Live: true, Help: "prompt and output tokens of a request together; longer ones end at once with length; 0 = no limit",
		Value: func(c *Config) Value { return number(&c.MaxModelLen, 0, maxUint) }},

	{Flag: "max-num-seqs", Env: "MOCK_MAX_NUM_SEQS", Group: GroupScheduler, Live: true, Timing: true, WithTrace: true, Help: "requests that run at once on one engine",
		Value: func(c *Config) Value { return number(&c.MaxNumSeqs, 1, maxUint) }},
	{Flag: "max-num-batched-tokens", Env: "MOCK_MAX_NUM_BATCHED_TOKENS", Group: GroupScheduler, Live: true, Help: "tokens of one step: decoding requests first, prompts share the rest",
		Value: func(c *Config) Value { return number(&c.MaxNumBatchedTokens, 1, maxUint) }},
	{Flag: "long-prefill-token-threshold", Env: "MOCK_LONG_PREFILL_TOKEN_THRESHOLD", Group: GroupScheduler, Help: "prompt tokens that one request takes from a step at most; 0 = no cap",
		Value: func(c *Config) Value { return number(&c.LongPrefillThreshold, 0, maxUint) }},
	{Flag: "max-loras", Env: "MOCK_MAX_LORAS", Group: GroupScheduler, Help: "LoRA adapters in use at once; requests with another wait; 0 = no limit",
		Value: func(c *Config) Value { return number(&c.MaxLoras, 0, math.MaxUint32) }},
	{Flag: "scheduling-policy", Env: "MOCK_SCHEDULING_POLICY", Group: GroupScheduler, Help: "order in which waiting requests are admitted",
		Value: func(c *Config) Value { return choice(&c.SchedulingPolicy, PolicyFCFS, PolicyPriority) }},

	{Flag: "time-to-first-token", Env: "MOCK_TTFT_MS", Group: GroupTiming, Live: true, Timing: true, Help: "ms from admission to the first token",
		Value: func(c *Config) Value { return number(&c.TimeToFirstToken, 0, maxUint) }},
	{Flag: "time-to-first-token-std-dev", Env: "MOCK_TTFT_STDDEV_MS", Group: GroupTiming, Live: true, Timing: true, Help: "standard deviation of it in ms; draws stay within 0.3 and 1.7 of the mean",
		Value: func(c *Config) Value { return number(&c.TimeToFirstTokenStdDev, 0, maxUint) }},
	{Flag: "inter-token-latency", Env: "MOCK_ITL_MS", Group: GroupTiming, Live: true, Timing: true, Help: "ms between two outputs of a request",
		Value: func(c *Config) Value { return number(&c.InterTokenLatency, 0, maxUint) }},
	{Flag: "inter-token-latency-std-dev", Env: "MOCK_ITL_STDDEV_MS", Group: GroupTiming, Live: true, Timing: true, Help: "standard deviation of it in ms",
		Value: func(c *Config) Value { return number(&c.InterTokenStdDev, 0, maxUint) }},
	{Flag: "prefill-overhead", Env: "MOCK_PREFILL_OVERHEAD_MS", Group: GroupTiming, Live: true, Timing: true, Help: "ms of every prefill, where no time to first token is set",
		Value: func(c *Config) Value { return number(&c.PrefillOverhead, 0, maxUint) }},
	{Flag: "prefill-time-per-token", Env: "MOCK_PREFILL_TIME_PER_TOKEN_MS", Group: GroupTiming, Live: true, Timing: true, Help: "ms for each prompt token on top of it",
		Value: func(c *Config) Value { return number(&c.PrefillTimePerToken, 0, maxUint) }},
	{Flag: "prefill-time-std-dev", Env: "MOCK_PREFILL_TIME_STDDEV_MS", Group: GroupTiming, Live: true, Timing: true, Help: "standard deviation of the prefill time in ms",
		Value: func(c *Config) Value { return number(&c.PrefillTimeStdDev, 0, maxUint) }},
	{Flag: "time-factor-under-load", Env: "MOCK_TIME_FACTOR_UNDER_LOAD", Group: GroupTiming, Live: true, Timing: true, WithTrace: true, Help: "factor on all of these times when max-num-seqs requests run; 1 = load changes nothing",
		Value: func(c *Config) Value {
			return float(&c.TimeFactorUnderLoad, 1, math.MaxFloat64, "a number of at least 1")
		}},
	{Flag: "latency-trace", Group: GroupTiming, Help: "JSONL file of recorded requests whose times are sampled instead of the settings above",
		Value: func(c *Config) Value { return text(&c.LatencyTrace) }},
	{Flag: "expect-config-hash", Group: GroupTiming, Help: "refuse to start unless the trace carries this config hash",
		Value: func(c *Config) Value { return text(&c.ExpectConfigHash) }},
	{Flag: "time-scale", Group: GroupTiming, Help: "every simulated duration is divided by this: 2 runs twice as fast",
		Value: func(c *Config) Value {
			return float(&c.TimeScale, math.SmallestNonzeroFloat64, math.MaxFloat64, "a number above 0")
		}},
	{Flag: "step-granularity", Group: GroupTiming, Help: "outputs leave on a grid of this width, so that requests share messages; 0 = off",
		Value: func(c *Config) Value { return span(&c.StepGranularity) }},

	{Flag: "failure-injection-rate", Env: "MOCK_FAILURE_INJECTION_RATE", Group: GroupFailures, Live: true, Help: "share of arriving requests that fail at once",
		Value: func(c *Config) Value { return float(&c.FailureInjectionRate, 0, 1, "a number from 0 to 1") }},
	{Flag: "failure-types", Env: "MOCK_FAILURE_TYPES", Group: GroupFailures, Live: true, Help: "how they fail, drawn from this list; a repeated word weighs more",
		Value: func(c *Config) Value { return words(&c.FailureTypes, FailError, FailLength, FailRepetition) }},

	{Flag: "control-address", Env: "MOCK_CONTROL_ADDRESS", Group: GroupControl, Help: "HOST:PORT or unix:/PATH of the control API; not given = no control API",
		Value: func(c *Config) Value { return parsed(&c.ControlAddress, allowedControl, isControl) }},
	{Flag: "control-timeout", Group: GroupControl, Help: "seconds after which a control call is answered with 504",
		Value: func(c *Config) Value { return number(&c.ControlTimeout, 1, 86400) }},
	{Flag: "control-token-file", Group: GroupControl, Help: "file with a token that every call must bring as a bearer token",
		Value: func(c *Config) Value { return text(&c.ControlTokenFile) }},
	{Flag: "request-journal", Group: GroupControl, Help: "finished requests of each engine that GET /requests can show; 0 = none",
		Value: func(c *Config) Value { return number(&c.RequestJournal, 0, maxJournal) }},
	{Flag: "control-ssl-certfile", Group: GroupControl, Help: "PEM file of the control API's certificate, as --ssl-certfile is of the OpenAI API",
		Value: func(c *Config) Value { return text(&c.ControlSSLCertFile) }},
	{Flag: "control-ssl-keyfile", Group: GroupControl, Help: "PEM file of its private key; none = it is in the certificate's file",
		Value: func(c *Config) Value { return text(&c.ControlSSLKeyFile) }},

	{Flag: "startup-timeout", Group: GroupProcess, Help: "seconds until every engine must have joined the frontend; 0 = for ever",
		Value: func(c *Config) Value { return number(&c.StartupTimeout, 0, maxSeconds) }},
	{Flag: "shutdown-timeout", For: everywhere, Group: GroupProcess, Help: "seconds to drain running requests at SIGTERM before they are aborted",
		Value: func(c *Config) Value { return number(&c.ShutdownTimeout, 0, maxSeconds) }},
	{Flag: "restart", Group: GroupProcess, Help: "what to do about a worker, or the front end of serve, that died",
		Value: func(c *Config) Value { return choice(&c.Restart, RestartNever, RestartOnFailure) }},
	{Flag: "announce-death", Group: GroupProcess, Help: "tell the frontend ENGINE_CORE_DEAD when a worker died",
		Value: func(c *Config) Value { return toggle(&c.AnnounceDeath) }},
	{Flag: "log-requests", Group: GroupProcess, Live: true, Help: "log every request's start, end and failure",
		Value: func(c *Config) Value { return toggle(&c.LogRequests) }},
	{Flag: "log-format", For: everywhere, Group: GroupProcess, Help: "log lines on stderr; auto is text on a terminal and JSON elsewhere",
		Value: func(c *Config) Value { return choice(&c.LogFormat, LogAuto, LogJSON, LogText) }},
})

// complete names the environment variable of each option that has no historical one, and the commands of those that only
// engines need.
func complete(rows []Option) []Option {
	for i := range rows {
		if rows[i].For == 0 {
			rows[i].For = engines
		}
		if rows[i].Env == "" {
			rows[i].Env = "VLLM_VCR_" + strings.ToUpper(rows[i].Key())
		}
	}
	return rows
}

// allowedVersion lists the lines that enginecore.ParseVersion reads.
const allowedVersion = "one of 0.25, 0.26, 0.27, 0.28, 0.29, 0.30, 0.31, 0.32, 0.33, with or without a leading v and a patch number"

func isVersion(s string) bool {
	_, err := enginecore.ParseVersion(s)
	return err == nil
}
