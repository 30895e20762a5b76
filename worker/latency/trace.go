// Package latency turns a recorded trace into the timing of an engine: times to first token and gaps between tokens, drawn
// from the recorded requests that were most like the one in question.
//
// It reads a trace once, whole, and refuses it at the first line that breaks the format. It must never know of engines'
// queues, of clocks or of settings; which stream it draws from is its caller's business.
package latency

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-json"
)

// maxLine is the longest line of a trace, in bytes: a request of some million tokens.
const maxLine = 64 << 20

// meta is what the first line of a trace may say of all others.
type meta struct {
	ConfigHash string `json:"config_hash"`
}

// record is one line of a trace: one request. Times are in ms. Keys that play no part here are checked where they must
// agree with others, and else ignored.
type record struct {
	PromptTokens *uint64    `json:"prompt_tokens"`
	CachedTokens uint64     `json:"cached_tokens"`
	OutputTokens *uint64    `json:"output_tokens"`
	TTFT         *float64   `json:"ttft_ms"`
	ITL          []float64  `json:"itl_ms"`
	ITLTokens    []uint64   `json:"itl_tokens"`
	ITLSummary   *summary   `json:"itl_summary"`
	Concurrency  *uint64    `json:"concurrency"`
	ITLContext   *batchMark `json:"itl_ctx"`
	OutputIDs    []uint64   `json:"output_token_ids"`
	FinishReason *string    `json:"finish_reason"`
}

// summary stands for gaps that were not recorded one by one.
type summary struct {
	Mean  *float64 `json:"mean_ms"`
	Count *uint64  `json:"count"`
}

// batchMark is what else was in the batch at each gap.
type batchMark struct {
	NumRunning    []uint64 `json:"num_running"`
	PrefillTokens []uint64 `json:"prefill_tokens"`
}

// Load reads the trace at path. With a hash other than "" the trace must carry just that one. Errors name the file, the
// line and what is wrong there.
func Load(path, hash string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("latency trace: %w", err)
	}
	defer f.Close()
	t, err := Read(f, hash)
	if err != nil {
		return nil, fmt.Errorf("latency trace %s: %w", path, err)
	}
	return t, nil
}

// Read reads a trace from r, as Load does from a file.
func Read(r io.Reader, hash string) (*Trace, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var b builder
	var found meta
	number, first := 0, true
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if first && isMeta(line, &found) {
			first = false
			continue
		}
		first = false
		rec, err := parseRecord(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		b.add(rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	if err := checkHash(found.ConfigHash, hash); err != nil {
		return nil, err
	}
	return b.build()
}

func checkHash(got, want string) error {
	switch {
	case want == "" || got == want:
		return nil
	case got == "":
		return fmt.Errorf("it has no config hash, want %q: capture it again, or drop --expect-config-hash", want)
	default:
		return fmt.Errorf("its config hash is %q, want %q", got, want)
	}
}

// isMeta reads {"meta": {…}}.
func isMeta(line []byte, m *meta) bool {
	var wrapped struct {
		Meta *meta `json:"meta"`
	}
	if json.Unmarshal(line, &wrapped) != nil || wrapped.Meta == nil {
		return false
	}
	*m = *wrapped.Meta
	return true
}

func parseRecord(line []byte) (record, error) {
	var r record
	err := json.Unmarshal(line, &r)
	var shape *json.UnmarshalTypeError
	switch {
	case line[0] != '{':
		return r, fmt.Errorf("%.40q is no JSON object", line)
	case errors.As(err, &shape):
		return r, fmt.Errorf("%s: a %s, which is not what the format has there", shape.Field, shape.Value)
	case err != nil:
		return r, err
	}
	return r, r.check()
}

// check applies the rules of the format between keys.
func (r *record) check() error {
	switch {
	case r.PromptTokens == nil:
		return errors.New("prompt_tokens is missing")
	case r.OutputTokens == nil:
		return errors.New("output_tokens is missing")
	case r.TTFT == nil:
		return errors.New("ttft_ms is missing")
	case *r.TTFT < 0:
		return fmt.Errorf("ttft_ms: %v, want at least 0", *r.TTFT)
	case r.Concurrency != nil && *r.Concurrency == 0:
		return errors.New("concurrency: 0, want at least 1: a request counts itself")
	case *r.OutputTokens > 1 && len(r.ITL) == 0 && r.ITLSummary == nil:
		return fmt.Errorf("output_tokens: %d without itl_ms or itl_summary", *r.OutputTokens)
	case r.OutputIDs != nil && uint64(len(r.OutputIDs)) != *r.OutputTokens:
		return fmt.Errorf("output_token_ids: %d of them, want output_tokens (%d)", len(r.OutputIDs), *r.OutputTokens)
	}
	return errors.Join(r.checkGaps(), r.checkSummary(), r.checkFinish())
}

func (r *record) checkGaps() error {
	for i, gap := range r.ITL {
		if gap < 0 {
			return fmt.Errorf("itl_ms[%d]: %v, want at least 0", i, gap)
		}
	}
	if c := r.ITLContext; c != nil && (len(c.NumRunning) != len(r.ITL) || len(c.PrefillTokens) != len(r.ITL)) {
		return fmt.Errorf("itl_ctx: %d and %d marks for %d gaps of itl_ms", len(c.NumRunning), len(c.PrefillTokens), len(r.ITL))
	}
	if r.ITLTokens == nil {
		return nil
	}
	if len(r.ITLTokens) != len(r.ITL) {
		return fmt.Errorf("itl_tokens: %d chunks for %d gaps of itl_ms", len(r.ITLTokens), len(r.ITL))
	}
	left := *r.OutputTokens
	for i, n := range r.ITLTokens {
		if n == 0 || n >= left {
			return fmt.Errorf("itl_tokens[%d]: %d, want at least 1 and a sum below output_tokens (%d)", i, n, *r.OutputTokens)
		}
		left -= n
	}
	return nil
}

func (r *record) checkSummary() error {
	s := r.ITLSummary
	if s == nil {
		return nil
	}
	if s.Mean == nil || s.Count == nil || *s.Mean < 0 {
		return errors.New("itl_summary: want mean_ms of at least 0 and count")
	}
	return nil
}

func (r *record) checkFinish() error {
	if r.FinishReason == nil {
		return nil
	}
	switch *r.FinishReason {
	case "stop", "length", "abort", "error", "repetition":
		return nil
	}
	return fmt.Errorf("finish_reason: %q, want stop, length, abort, error or repetition", *r.FinishReason)
}

func (r *record) concurrency() uint64 {
	if r.Concurrency == nil {
		return 1
	}
	return *r.Concurrency
}
