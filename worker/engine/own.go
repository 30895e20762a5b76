package engine

import "math/rand/v2"

// Own is what a request sets for itself. What it draws comes from a stream of its own, so that it changes nothing for others.
type Own struct {
	// Adjust changes a copy of the parameter set in force; nil = it is good as it is. It must be a pure function.
	Adjust func(*Params)
	// FirstToken and Gaps say that Adjust sets those times: they replace a recorded Latency.
	FirstToken, Gaps bool
	// Failures says that Adjust sets the share of failures: the request draws for itself.
	Failures bool
	// Fault strikes this request, nil = none of its own does. Its Count and Duration must be 0.
	Fault *Fault
}

// ownFault returns the fault that r brought, or nil.
func (r *Request) ownFault() *Fault {
	if r.Own == nil {
		return nil
	}
	return r.Own.Fault
}

// arriveOwn prepares what r brought.
func (e *Engine) arriveOwn(r *Request) {
	r.random = rand.New(rand.NewPCG(tokenSeed(e.cfg.Seed, e.cfg.Index, r.ID), mix(purposeOwn)))
	if f := r.Own.Fault; f != nil {
		f.until = Never
	}
}

// paramsFor returns the parameter set in force, as r wants it.
func (e *Engine) paramsFor(r *Request) *Params {
	if r.Own == nil || r.Own.Adjust == nil {
		return e.params
	}
	p := e.params.clone()
	r.Own.Adjust(p)
	return p
}
