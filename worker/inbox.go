package worker

import (
	"context"
	"fmt"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
	"vllm-vcr/worker/engine"
)

// arrivalInput is an ADD.
type arrivalInput struct{ request *engine.Request }

func (in arrivalInput) apply(l *loop, now engine.Time) {
	l.outputs.journal.arrive(in.request)
	if c := in.request.Caller.(*caller); c.adapter > 0 && l.utilities.adapters[c.adapter] != in.request.Adapter {
		l.engine.Reject(in.request, engine.UnknownAdapter)
		return
	}
	l.engine.Add(now, in.request)
}

// rejectedInput is an ADD that ends before an engine looks at it: often, one of which only the id could be read.
type rejectedInput struct {
	request *engine.Request
	cause   engine.Cause
}

func (in rejectedInput) apply(l *loop, _ engine.Time) {
	l.outputs.journal.arrive(in.request)
	l.engine.Reject(in.request, in.cause)
}

// abortInput is an ABORT.
type abortInput struct{ ids []string }

func (in abortInput) apply(l *loop, now engine.Time) { l.engine.Abort(now, in.ids) }

// droppedInput is a message that nothing could be made of.
type droppedInput struct{ err error }

func (in droppedInput) apply(l *loop, _ engine.Time) {
	l.page.Dropped.Add(1)
	l.outputs.log.Warn().Err(in.err).Msg("message dropped")
}

// reader turns the messages of one input socket into inputs of the loop.
type reader struct {
	loop       *loop
	clients    int    // how many output sockets there are to answer on
	vocabulary uint32 // token ids are below it
	echoes     bool   // answers are made of the prompt
	chunk      uint64 // tokens in one output
	scratch    enginecore.Request
}

// run reads until the connection ends, and returns why.
func (r *reader) run(ctx context.Context, conn *zmtp.Conn) error {
	for {
		frames, err := conn.Recv()
		if err != nil {
			return err
		}
		in, err := r.decode(frames)
		if err != nil {
			in = droppedInput{err}
		}
		if in != nil && !r.loop.send(ctx, in) {
			return context.Cause(ctx)
		}
	}
}

// decode keeps nothing of the frames. A nil input is a message that an engine has no use for.
func (r *reader) decode(frames [][]byte) (input, error) {
	if len(frames) < 2 || len(frames[0]) != 1 {
		return nil, fmt.Errorf("message of %d frames, want a type byte and a payload", len(frames))
	}
	payload := frames[1]
	switch frames[0][0] {
	case enginecore.FrameAdd:
		return r.add(payload)
	case enginecore.FrameAbort:
		ids, err := enginecore.DecodeAbort(payload)
		return abortInput{ids}, err
	case enginecore.FrameUtility:
		return r.utility(payload)
	case enginecore.FrameStartWave:
		return nil, nil // independent engines have no waves
	default:
		return nil, fmt.Errorf("message type %d, want %d to %d", frames[0][0], enginecore.FrameAdd, enginecore.FrameUtility)
	}
}

func (r *reader) add(payload []byte) (input, error) {
	in := &r.scratch
	err := enginecore.DecodeRequest(payload, in)
	if in.ID == "" && err != nil {
		return nil, err
	}
	if err != nil {
		r.loop.outputs.log.Warn().Str("request_id", in.ID).Err(err).Msg("request refused")
		return r.reject(in, engine.Unreadable), nil
	}
	if in.Sampling == nil && in.Pooling == nil {
		return r.reject(in, engine.NoSampling), nil
	}
	if int(in.ClientIndex) >= r.clients {
		return nil, fmt.Errorf("request %q: client index %d, want less than %d", in.ID, in.ClientIndex, r.clients)
	}
	own, err := r.own(in)
	scores := r.scores(in)
	if err == nil {
		err = scores.check(r.chunk)
	}
	if err != nil {
		r.loop.outputs.log.Warn().Str("request_id", in.ID).Err(err).Msg("request refused")
		return r.refuse(in, engine.BadArgument, err.Error()), nil
	}
	return arrivalInput{r.newRequest(in, own, scores)}, nil
}

// own is what a request that generates sets for itself.
func (r *reader) own(in *enginecore.Request) (*engine.Own, error) {
	if in.Sampling == nil {
		return nil, nil
	}
	return ownOf(in.Sampling)
}

func (r *reader) reject(in *enginecore.Request, cause engine.Cause) input {
	return r.refuse(in, cause, "")
}

// refuse is reject where the client is told what is wrong.
func (r *reader) refuse(in *enginecore.Request, cause engine.Cause, fault string) input {
	c := &caller{id: enginecore.EncodeID(in.ID), fault: fault}
	return rejectedInput{&engine.Request{ID: in.ID, Client: r.known(in.ClientIndex), Caller: c}, cause}
}

// known is the client to answer to where the one named may not exist.
func (r *reader) known(client uint32) uint32 {
	if int(client) >= r.clients {
		return 0
	}
	return client
}

func (r *reader) utility(payload []byte) (input, error) {
	call, err := enginecore.DecodeUtility(payload)
	if err != nil {
		return nil, err
	}
	if int(call.ClientIndex) >= r.clients {
		return nil, fmt.Errorf("utility call %s: client index %d, want less than %d", call.Method, call.ClientIndex, r.clients)
	}
	call.Args = append([]byte(nil), call.Args...)
	return utilityInput{&call}, nil
}
