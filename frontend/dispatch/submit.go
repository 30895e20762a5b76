package dispatch

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"vllm-vcr/protocol/enginecore"
)

// keptPayload is the most that is kept of a buffer for payloads, in bytes.
const keptPayload = 1 << 20

// Request is what is to be asked of an engine. Nothing of it is kept.
type Request struct {
	// Request is sent as it is, but for the fields ID, ArrivalTime, DataParallelRank and ClientIndex, which are set here.
	// ExternalID is the id that the client knows, from which the engine's is made.
	enginecore.Request

	// Rank is the engine that must take it; not set = any.
	Rank enginecore.Optional[int]

	// Arrived is when it came; zero = now.
	Arrived time.Time

	// Choices is the number of answers, each by a request of its own; 0 = 1. A seed grows by one from choice to choice.
	Choices int

	// Vary changes a choice's own copy of Sampling, whose lists it must replace rather than write to. nil = nothing.
	Vary func(choice int, p *enginecore.SamplingParams)
}

// Submit gives a request of one choice to an engine. It doesn't wait. The error wraps ErrNoEngine if none takes it, and ErrRank
// if it asks for one that doesn't exist.
func (d *Dispatcher) Submit(r Request) (*Stream, error) {
	r.Choices = 1
	streams, err := d.SubmitAll(r)
	if err != nil {
		return nil, err
	}
	return streams[0], nil
}

// SubmitAll gives a request to the engines, once for each choice, and returns the streams in their order: all of them or, with an
// error as of Submit, none.
func (d *Dispatcher) SubmitAll(r Request) ([]*Stream, error) {
	if rank := r.Rank.Value; r.Rank.Set && (rank < 0 || rank >= len(d.engines)) {
		return nil, fmt.Errorf("rank %d: %w, want 0 to %d", rank, ErrRank, len(d.engines)-1)
	}
	r.Choices = max(1, r.Choices)
	if r.Arrived.IsZero() {
		r.Arrived = time.Now()
	}
	r.ArrivalTime = float64(r.Arrived.UnixNano()) / 1e9
	h := history{arrived: r.Arrived, prompt: len(r.PromptTokens), group: newGroup(r.Choices)}
	if p := r.Sampling; p != nil && p.MaxTokens != enginecore.Unlimited {
		h.maxTokens = enginecore.Some(p.MaxTokens)
	}
	base := fmt.Sprintf("%s-%08x", r.ExternalID, d.lastID.Add(1))
	streams := make([]*Stream, 0, r.Choices)
	for choice := range r.Choices {
		s, err := d.place(&r, newStream(d, childID(base, choice, r.Choices), choice, h))
		if err != nil {
			for _, s := range streams {
				s.Cancel()
			}
			return nil, err
		}
		streams = append(streams, s)
	}
	return streams, nil
}

// childID is the id of one choice, in vLLM's form.
func childID(base string, choice, choices int) string {
	if choices == 1 {
		return base
	}
	return strconv.Itoa(choice) + "_" + base
}

// place gives a request to an engine, and to another one if that has just gone.
func (d *Dispatcher) place(r *Request, s *Stream) (*Stream, error) {
	own := r.Request
	own.ID = s.id
	own.Sampling = r.sampling(s.choice)
	if r.Rank.Set {
		own.DataParallelRank = enginecore.Some(uint32(r.Rank.Value))
	}
	payload := d.encode(&own) // before any lock: a prompt may be long
	defer d.payloads.Put(payload)
	send := func(rank int) error { return d.client.AddEncoded(rank, *payload) }
	if r.Rank.Set {
		d.balancer.count(r.Rank.Value)
		if err := d.engines[r.Rank.Value].add(s, send); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoEngine, err)
		}
		return s, nil
	}
	var failed []int
	var errs []error
	for {
		rank, ok := d.balancer.choose(failed)
		if !ok {
			return nil, errors.Join(append([]error{ErrNoEngine}, errs...)...)
		}
		err := d.engines[rank].add(s, send)
		if err == nil {
			return s, nil
		}
		failed, errs = append(failed, rank), append(errs, err)
	}
}

// encode makes the payload of a request in a buffer of d.payloads.
func (d *Dispatcher) encode(r *enginecore.Request) *[]byte {
	b, ok := d.payloads.Get().(*[]byte)
	if !ok || cap(*b) > keptPayload {
		b = new([]byte)
	}
	r.ClientIndex = 0 // the only one there is
	*b = enginecore.AppendRequest((*b)[:0], d.version, r)
	return b
}

// sampling is the parameters of one choice.
func (r *Request) sampling(choice int) *enginecore.SamplingParams {
	if r.Sampling == nil || r.Choices == 1 && r.Vary == nil {
		return r.Sampling
	}
	p := *r.Sampling
	p.Wire, p.N = nil, 1
	if p.Seed.Set {
		p.Seed.Value += int64(choice)
	}
	if r.Vary != nil {
		r.Vary(choice, &p)
	}
	return &p
}
