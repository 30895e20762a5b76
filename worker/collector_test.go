package worker

import (
	"bytes"
	"sync"
	"testing"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// seen is what a frontend was sent of one request.
type seen struct {
	tokens   []uint32
	chunks   int
	largest  int // tokens of one chunk
	finish   enginecore.FinishReason
	finished bool // its id was in finished_requests
	client   int
	events   []enginecore.Event
	prefill  *enginecore.PrefillStats
	err      *enginecore.RequestError
	stop     enginecore.StopReason
	logprobs []enginecore.Logprobs // copies, one of each output that had any
	prompt   *enginecore.Logprobs
	pooled   *enginecore.Tensor
	at       []float64 // envelope timestamps
}

// collector gathers what engines send.
type collector struct {
	t        *testing.T
	mu       sync.Mutex
	changed  *sync.Cond
	requests map[string]*seen
	stats    []enginecore.SchedulerStats
	statsOf  []int // clients that stats went to
	messages int
	deaths   int
	onFinish func(id string)
	hold     map[int]chan struct{} // a client that reads nothing until the channel is closed
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, requests: map[string]*seen{}, hold: map[int]chan struct{}{}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func (c *collector) take(d *engineclient.Delivery) {
	c.mu.Lock()
	hold := c.hold[d.Client]
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Broadcast()
	c.messages++
	if s := d.Outputs.Stats; s != nil {
		c.stats = append(c.stats, *s)
		c.statsOf = append(c.statsOf, d.Client)
	}
	for i := range d.Outputs.Requests {
		c.output(d, &d.Outputs.Requests[i])
	}
	for _, id := range d.Outputs.Finished {
		c.request(id).finished = true
	}
}

func (c *collector) output(d *engineclient.Delivery, o *enginecore.RequestOutput) {
	s := c.request(string(o.ID))
	s.client = d.Client
	s.chunks++
	s.largest = max(s.largest, len(o.Tokens))
	s.tokens = append(s.tokens, o.Tokens...)
	s.at = append(s.at, d.Outputs.Timestamp)
	s.events = append(s.events, o.Events...)
	if o.Prefill != nil {
		p := *o.Prefill
		s.prefill = &p
	}
	if o.Error != nil {
		e := *o.Error
		s.err = &e
	}
	c.scores(s, o)
	if o.Finish != enginecore.FinishNone {
		s.finish, s.stop = o.Finish, o.StopReason
		if c.onFinish != nil {
			c.onFinish(string(o.ID))
		}
	}
}

// scores copies what came beside the tokens.
func (c *collector) scores(s *seen, o *enginecore.RequestOutput) {
	if o.Logprobs != nil {
		s.logprobs = append(s.logprobs, copyLogprobs(*o.Logprobs))
	}
	if o.PromptLogprobs != nil {
		l := copyLogprobs(*o.PromptLogprobs)
		s.prompt = &l
	}
	if o.Pooling != nil {
		t := copyTensor(*o.Pooling)
		s.pooled = &t
	}
}

func copyLogprobs(l enginecore.Logprobs) enginecore.Logprobs {
	return enginecore.Logprobs{TokenIDs: copyTensor(l.TokenIDs), Logprobs: copyTensor(l.Logprobs), Ranks: copyTensor(l.Ranks)}
}

func copyTensor(t enginecore.Tensor) enginecore.Tensor {
	t.Data = bytes.Clone(t.Data)
	return t
}

// atFinish calls f, one call at a time, at each request's last output.
func (c *collector) atFinish(f func(id string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onFinish = f
}

func (c *collector) request(id string) *seen {
	if c.requests[id] == nil {
		c.requests[id] = &seen{}
	}
	return c.requests[id]
}

func (c *collector) dead(int, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaths++
	c.changed.Broadcast()
}

// awaitEnd waits until the request has ended, and returns all that came of it.
func (c *collector) awaitEnd(id string) seen {
	c.t.Helper()
	c.await("end of "+id, func() bool { s := c.requests[id]; return s != nil && s.finish != enginecore.FinishNone })
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.requests[id]
}

func (c *collector) await(what string, done func() bool) {
	c.t.Helper()
	if !awaitCond(c.changed, done) {
		c.t.Fatalf("no %s within %v", what, patience)
	}
}
