package supervisor

import (
	"context"
	"errors"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// fanOut asks every one of the members, in order, and then waits for their answers in order: each is asked after the one
// before it, and the wait is the slowest one's. answers[i] and errs[i] belong to members[i].
func (f *Fleet) fanOut(ctx context.Context, members []*member, c ipc.Call) (answers []ipc.Answer, errs []error) {
	e := ask(members, c)
	return f.collect(ctx, e, f.send(ctx, e))
}

func ask(members []*member, c ipc.Call) askEvent {
	questions := make([]*question, len(members))
	for i, m := range members {
		questions[i] = &question{m: m, call: c, asked: time.Now(), replyC: make(chan reply, 1)}
	}
	return askEvent{questions}
}

// askConfig asks the first one for its configuration, and of the others that they are there: theirs would be thrown away.
func askConfig(members []*member) askEvent {
	e := ask(members, ipc.Call{Op: ipc.OpPing})
	for _, q := range e.questions[:min(1, len(members))] { // there may be none, where none lives
		q.call.Op = ipc.OpConfig
	}
	return e
}

// collect waits for the answers to questions that Run has taken, or has not, for a reason.
func (f *Fleet) collect(ctx context.Context, e askEvent, untaken error) (answers []ipc.Answer, errs []error) {
	answers, errs = make([]ipc.Answer, len(e.questions)), make([]error, len(e.questions))
	for i, q := range e.questions {
		switch {
		case errors.Is(untaken, errStopped):
			errs[i] = &GoneError{q.m.index, q.m.rank, untaken.Error()}
		case untaken != nil:
			errs[i] = q.unanswered()
		default:
			answers[i], errs[i] = f.wait(ctx, q)
		}
		if errs[i] == nil && answers[i].Refused != "" {
			errs[i] = &RefusedError{q.m.index, q.m.rank, answers[i].Refused}
		}
	}
	return answers, errs
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Config asks every engine and returns engine 0's configuration.
func (f *Fleet) Config(ctx context.Context) (config.Live, error) { return f.config(ctx, f.members) }

// EngineConfig asks one engine. index must be below Len.
func (f *Fleet) EngineConfig(ctx context.Context, index int) (config.Live, error) {
	return f.config(ctx, f.members[index:index+1])
}

func (f *Fleet) config(ctx context.Context, members []*member) (config.Live, error) {
	e := askConfig(members)
	answers, errs := f.collect(ctx, e, f.send(ctx, e))
	if err := first(errs); err != nil {
		return config.Live{}, err
	}
	return liveOf(answers[0])
}

func liveOf(a ipc.Answer) (config.Live, error) {
	if a.Config == nil {
		return config.Live{}, errors.New("the worker's answer holds no configuration")
	}
	return *a.Config, nil
}

// Stats asks every engine and returns the sum.
func (f *Fleet) Stats(ctx context.Context) (ipc.Stats, error) { return f.stats(ctx, f.members) }

// EngineStats asks one engine. index must be below Len.
func (f *Fleet) EngineStats(ctx context.Context, index int) (ipc.Stats, error) {
	return f.stats(ctx, f.members[index:index+1])
}

func (f *Fleet) stats(ctx context.Context, members []*member) (ipc.Stats, error) {
	var sum ipc.Stats
	answers, errs := f.fanOut(ctx, members, ipc.Call{Op: ipc.OpStats})
	if err := first(errs); err != nil {
		return sum, err
	}
	for _, a := range answers {
		if a.Stats == nil {
			return sum, errors.New("the worker's answer holds no counters")
		}
		sum = sum.Add(*a.Stats)
	}
	return sum, nil
}
