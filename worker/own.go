package worker

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
)

// maxOwnValue is the longest value of one argument, in bytes of msgpack.
const maxOwnValue = 4096

// ownSetting is a setting that a request may have for itself, under the name that a patch has for it.
type ownSetting struct {
	firstToken, gap, failure bool // what it is about
	// copy takes the one value over.
	copy func(to *engine.Params, from *engine.Params)
}

var ownSettings = map[string]ownSetting{
	"time_to_first_token":         {firstToken: true, copy: func(to, from *engine.Params) { to.TTFT = from.TTFT }},
	"time_to_first_token_std_dev": {firstToken: true, copy: func(to, from *engine.Params) { to.TTFTStdDev = from.TTFTStdDev }},
	"inter_token_latency":         {gap: true, copy: func(to, from *engine.Params) { to.ITL = from.ITL }},
	"inter_token_latency_std_dev": {gap: true, copy: func(to, from *engine.Params) { to.ITLStdDev = from.ITLStdDev }},
	"prefill_overhead":            {firstToken: true, copy: func(to, from *engine.Params) { to.PrefillOverhead = from.PrefillOverhead }},
	"prefill_time_per_token":      {firstToken: true, copy: func(to, from *engine.Params) { to.PrefillPerToken = from.PrefillPerToken }},
	"prefill_time_std_dev":        {firstToken: true, copy: func(to, from *engine.Params) { to.PrefillStdDev = from.PrefillStdDev }},
	"time_factor_under_load":      {copy: func(to, from *engine.Params) { to.LoadFactor = from.LoadFactor }},
	"failure_injection_rate":      {failure: true, copy: func(to, from *engine.Params) { to.FailureRate = from.FailureRate }},
	"failure_types":               {copy: func(to, from *engine.Params) { to.FailureTypes = from.FailureTypes }},
}

// The arguments of a request's own fault.
const (
	argFault      = "fault"
	argFaultAfter = "fault_after_tokens"
	argFaultDelay = "fault_delay"
)

// ownFaults are the kinds that strike one request.
var ownFaults = []string{ipc.FaultError, ipc.FaultLength, ipc.FaultRepetition, ipc.FaultStall, ipc.FaultCrash}

// arguments is what a request's extra arguments say, as far as they concern us.
type arguments struct {
	given    config.Config // the settings named hold what they were given
	settings []ownSetting
	own      engine.Own
	kind     string // of the fault, "" = none
	after    uint64
	delay    uint64 // ms
	about    string // an argument about a fault that was given, "" = none
}

// ownOf reads what a request sets for itself: nil where that is nothing. Arguments that we have no name for are somebody
// else's.
func ownOf(s *enginecore.SamplingParams) (*engine.Own, error) {
	if len(s.ExtraArgs) == 0 {
		return nil, nil
	}
	var a *arguments // none for those who have only arguments of others
	err := s.EachExtraArg(func(name string, value msgp.Raw) error {
		_, setting := ownSettings[name]
		if !setting && name != argFault && name != argFaultAfter && name != argFaultDelay || value == nil {
			return nil
		}
		if a == nil {
			a = &arguments{}
		}
		return a.take(name, value)
	})
	if err == nil && a != nil {
		err = a.finish()
	}
	if err != nil {
		return nil, fmt.Errorf("vllm_xargs: %w", err)
	}
	if a == nil {
		return nil, nil
	}
	return &a.own, nil
}

// take reads one argument that is ours.
func (a *arguments) take(name string, value msgp.Raw) error {
	if len(value) > maxOwnValue {
		return fmt.Errorf("%s: %d bytes, want at most %d", name, len(value), maxOwnValue)
	}
	var text bytes.Buffer
	if _, err := msgp.UnmarshalAsJSON(&text, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := a.set(name, value, text.Bytes()); err != nil {
		return fmt.Errorf("%s: %.100s: %w", name, text.Bytes(), err)
	}
	return nil
}

func (a *arguments) set(name string, value msgp.Raw, text []byte) error {
	switch name {
	case argFault:
		return a.setKind(value)
	case argFaultAfter:
		a.about = name
		return setNumber(&a.after, value, 1<<64-1)
	case argFaultDelay:
		a.about = name
		return setNumber(&a.delay, value, ipc.MaxFaultTime)
	}
	option, _ := config.LiveOption(name) // its name is that of a row
	v := option.Value(&a.given)
	if err := v.SetJSON(text); err != nil {
		return err
	}
	setting := ownSettings[name]
	a.settings = append(a.settings, setting)
	a.own.FirstToken = a.own.FirstToken || setting.firstToken
	a.own.Gaps = a.own.Gaps || setting.gap
	a.own.Failures = a.own.Failures || setting.failure
	return v.Check()
}

func (a *arguments) setKind(value msgp.Raw) error {
	kind, _, err := msgp.ReadStringBytes(value)
	if err != nil || !slices.Contains(ownFaults, kind) {
		return fmt.Errorf("want one of %q", ownFaults)
	}
	a.kind = kind
	return nil
}

func setNumber(p *uint64, value msgp.Raw, most uint64) error {
	n, _, err := msgp.ReadUint64Bytes(value)
	if err != nil || n > most {
		return fmt.Errorf("want an integer from 0 to %d", most)
	}
	*p = n
	return nil
}

// finish makes of all arguments what the engine wants to know.
func (a *arguments) finish() error {
	if len(a.settings) > 0 {
		from, settings := params(a.given.Live), a.settings
		a.own.Adjust = func(p *engine.Params) {
			for _, s := range settings {
				s.copy(p, &from)
			}
		}
	}
	switch stall := a.kind == ipc.FaultStall; {
	case a.kind == "" && a.about != "":
		return fmt.Errorf("%s: given without %s", a.about, argFault)
	case stall && a.delay == 0:
		return errors.New(argFaultDelay + ": a stall wants one of at least 1 ms")
	case !stall && a.delay > 0:
		return fmt.Errorf("%s: %d: only a stall has one", argFaultDelay, a.delay)
	case a.kind != "":
		a.own.Fault = &engine.Fault{Kind: faultKinds[a.kind], AfterTokens: a.after, Delay: engine.Milliseconds(a.delay)}
	}
	return nil
}
