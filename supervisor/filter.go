package supervisor

import (
	"context"

	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// Filter returns the log filter in force, in its normal form.
func (f *Fleet) Filter() string { return f.opts.Log.Filter().String() }

// SetFilter changes the log filter of this process and of every worker's, and returns its normal form. A worker that is
// gone or silent doesn't matter: it gets the filter when it starts or wakes up.
func (f *Fleet) SetFilter(ctx context.Context, text string) (string, error) {
	filter, err := logs.ParseFilter(text)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timing.patience)
	defer cancel()
	e := filterEvent{filter, ask(f.members, ipc.Call{Op: ipc.OpLog, Filter: filter.String()})}
	untaken := f.send(ctx, e)
	if untaken != nil {
		f.opts.Log.SetFilter(filter) // no worker runs that could be told
	}
	f.collect(ctx, e.ask, untaken)
	return filter.String(), nil
}

// filterEvent is a new log filter. Those of two callers reach all processes in the same order.
type filterEvent struct {
	filter logs.Filter
	ask    askEvent
}

func (e filterEvent) apply(f *Fleet) {
	f.opts.Log.SetFilter(e.filter)
	e.ask.apply(f)
}
