package main

import (
	"strconv"
	"strings"
	"time"
)

// target is an engine command with a name.
type target struct {
	name    string
	command []string // with placeholders
}

// setup is what a scenario wants of an engine command.
type setup struct {
	engines   int
	seqs      int // requests that one engine runs at once
	ttft, itl time.Duration
	control   string // HOST:PORT of the control API; "" = none
	http      string // HOST:PORT of the OpenAI API; "" = none
}

// mentions tells whether a placeholder is in the command.
func (t target) mentions(placeholder string) bool {
	for _, word := range t.command {
		if strings.Contains(word, placeholder) {
			return true
		}
	}
	return false
}

// controllable tells whether the command says where the control API goes.
func (t target) controllable() bool { return t.mentions("{flags}") || t.mentions("{control}") }

// argv is the command for one start.
func (t target) argv(s setup, handshake string) []string {
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	fill := strings.NewReplacer(
		"{handshake}", handshake,
		"{rpc}", port(handshake),
		"{port}", port(s.http),
		"{engines}", strconv.Itoa(s.engines),
		"{seqs}", strconv.Itoa(s.seqs),
		"{ttft}", milliseconds(s.ttft),
		"{itl}", milliseconds(s.itl),
		"{control}", s.control,
	)
	var argv []string
	for _, word := range t.command {
		if word != "{flags}" {
			argv = append(argv, fill.Replace(word))
			continue
		}
		argv = append(argv,
			"--engine-count", strconv.Itoa(s.engines), "--max-num-seqs", strconv.Itoa(s.seqs),
			"--max-num-batched-tokens", strconv.Itoa(s.budget()),
			"--time-to-first-token", milliseconds(s.ttft), "--inter-token-latency", milliseconds(s.itl))
		if s.control != "" {
			argv = append(argv, "--control-address", s.control)
		}
	}
	return argv
}

// budget is the tokens of a step: enough that it never keeps a request from its slot.
func (s setup) budget() int { return max(leastBudget, 2*s.seqs) }

// leastBudget is vLLM's default.
const leastBudget = 2048

// port is what follows the last colon of an address.
func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
