package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"vllm-vcr/protocol/enginecore"

	"github.com/tinylib/msgp/msgp"
)

// Answer is one engine's to a utility call.
type Answer struct {
	Rank  int
	Value msgp.Raw // nil from a method without a result
}

// Call calls a utility method of every living engine at once and waits for all answers, which come by rank. args is an array of
// msgpack, nil for none. The error wraps ErrNoEngine if none lives; otherwise it joins those of the engines that failed, each an
// [engineclient.CallError] where the engine refused.
func (d *Dispatcher) Call(ctx context.Context, method string, args msgp.Raw) ([]Answer, error) {
	var answers []Answer
	for _, e := range d.engines {
		if e.health() == nil {
			answers = append(answers, Answer{Rank: e.rank})
		}
	}
	if len(answers) == 0 {
		return nil, fmt.Errorf("call %s: %w", method, ErrNoEngine)
	}
	errs := make([]error, len(answers))
	var calls sync.WaitGroup
	for i := range answers {
		calls.Go(func() { answers[i].Value, errs[i] = d.client.Utility(ctx, answers[i].Rank, method, args) })
	}
	calls.Wait()
	return answers, errors.Join(errs...)
}

// callBool is Call for a method that answers with a boolean.
func (d *Dispatcher) callBool(ctx context.Context, method string, args msgp.Raw) ([]bool, error) {
	answers, err := d.Call(ctx, method, args)
	if err != nil {
		return nil, err
	}
	values := make([]bool, len(answers))
	for i, a := range answers {
		if values[i], _, err = msgp.ReadBoolBytes(a.Value); err != nil {
			return nil, fmt.Errorf("call engine %d: %s: answer: %w", a.Rank, method, err)
		}
	}
	return values, nil
}

// all tells whether every value is true.
func all(values []bool) bool {
	for _, v := range values {
		if !v {
			return false
		}
	}
	return true
}

// Sleep sends all engines to sleep: level 1 or 2, mode "abort", "wait" or "keep".
func (d *Dispatcher) Sleep(ctx context.Context, level uint64, mode string) error {
	if _, err := d.Call(ctx, "sleep", enginecore.AppendSleepArgs(nil, level, mode)); err != nil {
		return err
	}
	d.observer.Slept(level)
	return nil
}

// WakeUp wakes what the tags name at all engines; no tags mean everything.
func (d *Dispatcher) WakeUp(ctx context.Context, tags []string) error {
	if _, err := d.Call(ctx, "wake_up", enginecore.AppendWakeUpArgs(nil, tags)); err != nil {
		return err
	}
	if len(tags) == 0 {
		d.observer.Slept(0)
	}
	return nil
}

// IsSleeping tells whether the engines sleep. It is an error if they differ.
func (d *Dispatcher) IsSleeping(ctx context.Context) (bool, error) {
	values, err := d.callBool(ctx, "is_sleeping", nil)
	if err != nil {
		return false, err
	}
	for _, v := range values {
		if v != values[0] {
			return false, errors.New("is_sleeping: some engines sleep and some don't")
		}
	}
	return values[0], nil
}

// ResetPrefixCache empties the prefix cache of all engines; true if each of them did it.
func (d *Dispatcher) ResetPrefixCache(ctx context.Context, running, connector bool) (bool, error) {
	values, err := d.callBool(ctx, "reset_prefix_cache", enginecore.AppendResetPrefixCacheArgs(nil, running, connector))
	return err == nil && all(values), err
}
