package metrics

import (
	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

var _ dispatch.Observer = (*Metrics)(nil)

// Joined implements dispatch.Observer.
func (m *Metrics) Joined(rank int, r *enginecore.ReadyResponse) {
	m.sized.Do(func() {
		longest := m.maxModelLen
		if longest == 0 {
			longest = r.MaxModelLen
		}
		m.families.sizes(m.engines, longest)
	})
	m.caches.joined(rank, r)
	m.adapters.limit(r.MaxLoRAs)
}

// Left implements dispatch.Observer: the load of an engine that is gone is none.
func (m *Metrics) Left(rank int) {
	m.Scheduled(rank, &enginecore.SchedulerStats{})
}

// Scheduled implements dispatch.Observer.
func (m *Metrics) Scheduled(rank int, s *enginecore.SchedulerStats) {
	e := &m.engines[rank]
	e.running.Set(float64(s.Running))
	e.waiting.Set(float64(s.Waiting + s.SkippedWaiting))
	e.capacity.Set(float64(s.Waiting))
	e.deferred.Set(float64(s.SkippedWaiting))
	e.cacheUsage.Set(s.KVCacheUsage)
	if c := &s.PrefixCache; c.Queries > 0 {
		e.queries.Add(float64(c.Queries))
		e.hits.Add(float64(c.Hits))
		e.device.Add(float64(c.Hits))
	}
	if c := s.Connector; c != nil {
		e.externalQueries.Add(float64(c.Queries))
		e.externalHits.Add(float64(c.Hits))
		e.external.Add(float64(c.Hits))
	}
	m.adapters.set(rank, s.RunningLoRAs, s.WaitingLoRAs)
}

// Step implements dispatch.Observer.
func (m *Metrics) Step(rank int, s *dispatch.Step) {
	e := &m.engines[rank]
	e.iteration.Observe(float64(s.Prefill.Computed) + float64(s.Generated))
	e.generated.Add(float64(s.Generated))
	for _, t := range s.Gaps {
		e.gap.Observe(t)
	}
	if s.Preemptions > 0 {
		e.preemptions.Add(float64(s.Preemptions))
	}
	if len(s.FirstTokens) == 0 {
		return
	}
	for _, t := range s.FirstTokens {
		e.firstToken.Observe(t)
	}
	p := &s.Prefill
	e.prompt.Add(float64(p.Prompt))
	e.cached.Add(float64(p.Cached))
	e.computed.Add(float64(p.Computed))
	e.localCached.Add(float64(p.LocalCached))
	e.externalCached.Add(float64(p.ExternalCached))
}

// Ended implements dispatch.Observer.
func (m *Metrics) Ended(rank int, d *dispatch.End) {
	e := &m.engines[rank]
	e.success[d.Reason].Inc()
	e.total.Observe(d.Total)
	e.queue.Observe(d.Queue)
	e.prefill.Observe(d.Prefill)
	e.decode.Observe(d.Decode)
	e.inference.Observe(d.Inference)
	e.perToken.Observe(perToken(d))
	e.promptTokens.Observe(float64(d.Prompt))
	e.generatedTokens.Observe(float64(d.Generated))
	e.computedTokens.Observe(float64(d.Computed))
	e.requestPreemptions.Observe(float64(d.Preemptions))
	if d.MaxTokens.Set {
		e.maxTokens.Observe(float64(d.MaxTokens.Value))
	}
	if d.Choices > 0 {
		e.choices.Observe(float64(d.Choices))
		e.maxGenerated.Observe(float64(d.MaxGenerated))
	}
}

// perToken is the mean time of a token after the first, in seconds.
func perToken(d *dispatch.End) float64 {
	if d.Generated < 2 {
		return 0
	}
	return d.Decode / float64(d.Generated-1)
}

// Slept implements dispatch.Observer.
func (m *Metrics) Slept(level uint64) {
	for i := range m.engines {
		e := &m.engines[i]
		e.awake.Set(flag(level == 0))
		e.offloaded.Set(flag(level == 1))
		e.discarded.Set(flag(level == 2))
	}
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}
