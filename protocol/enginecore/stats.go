package enginecore

import "github.com/tinylib/msgp/msgp"

// SchedulerStats is the state of an engine at a step. The Rust frontends refuse a message whose stats lack a key, so all are written.
type SchedulerStats struct {
	Running        uint64 // requests
	Waiting        uint64 // requests; from 0.33 on without the skipped ones
	SkippedWaiting uint64
	StepCounter    uint64
	CurrentWave    uint64
	KVCacheUsage   float64 // 1 = full
	PrefixCache    PrefixCacheStats
	Connector      *PrefixCacheStats // of an external cache; nil = none
	SpecDecoding   *SpecDecodingStats
	WaitingLoRAs   []LoRACount
	RunningLoRAs   []LoRACount

	// Opaque parts, nil where there is nothing to say.
	IterationDetails msgp.Raw
	EvictionEvents   msgp.Raw // array
	KVConnector      msgp.Raw
	CUDAGraph        msgp.Raw
	Perf             msgp.Raw
	FetchingByStage  msgp.Raw // map, from 0.33 on
	ECConnector      msgp.Raw // from 0.33 on
}

// PrefixCacheStats counts what happened since the stats before: the frontend adds them up. Queries and hits are tokens.
type PrefixCacheStats struct {
	Reset                                              bool // the cache was emptied
	Requests, Queries, Hits                            uint64
	PreemptedRequests, PreemptedQueries, PreemptedHits uint64
	HitsBySource                                       msgp.Raw // map, from 0.33 on; nil = empty
}

// SpecDecodingStats counts speculative decoding since the stats before.
type SpecDecodingStats struct {
	SpecTokens, Drafts, DraftTokens, AcceptedTokens uint64
	AcceptedByPosition                              []uint64 // SpecTokens of them
	DraftedByPosition                               []uint64
}

// LoRACount is the number of requests of one adapter.
type LoRACount struct {
	Name  string
	Count uint64
}

// appendStats writes the map of line v; nil is nil.
func appendStats(b []byte, v Version, s *SchedulerStats) []byte {
	if s == nil {
		return msgp.AppendNil(b)
	}
	n := uint32(16)
	if v.AtLeast(33) {
		n = 18
	}
	b = msgp.AppendMapHeader(b, n)
	b = appendUintField(b, "num_running_reqs", s.Running)
	b = appendUintField(b, "num_waiting_reqs", s.Waiting)
	b = appendUintField(b, "num_skipped_waiting_reqs", s.SkippedWaiting)
	b = appendUintField(b, "step_counter", s.StepCounter)
	b = appendUintField(b, "current_wave", s.CurrentWave)
	b = msgp.AppendFloat64(msgp.AppendString(b, "kv_cache_usage"), s.KVCacheUsage)
	b = s.PrefixCache.append(msgp.AppendString(b, "prefix_cache_stats"), v)
	if !s.plain() {
		return appendStatsTail(b, v, s)
	}
	if v.AtLeast(33) {
		return append(b, plainTail33...)
	}
	return append(b, plainTail27...)
}

// The keys behind the changing ones, as they are where there is nothing to say about them.
var (
	plainTail33 = appendStatsTail(nil, Version{}, &SchedulerStats{})
	plainTail27 = appendStatsTail(nil, Version{behind: newestMinor - 27}, &SchedulerStats{})
)

// plain tells whether appendStatsTail would write what is prepared.
func (s *SchedulerStats) plain() bool {
	return s.Connector == nil && s.SpecDecoding == nil && len(s.WaitingLoRAs)+len(s.RunningLoRAs) == 0 &&
		len(s.IterationDetails)+len(s.EvictionEvents)+len(s.KVConnector)+len(s.CUDAGraph)+len(s.Perf) == 0 &&
		len(s.FetchingByStage)+len(s.ECConnector) == 0
}

func appendStatsTail(b []byte, v Version, s *SchedulerStats) []byte {
	b = appendRawField(b, "iteration_details", s.IterationDetails)
	b = s.Connector.append(msgp.AppendString(b, "connector_prefix_cache_stats"), v)
	b = msgp.AppendString(b, "kv_cache_eviction_events")
	if len(s.EvictionEvents) == 0 {
		b = msgp.AppendArrayHeader(b, 0)
	} else {
		b = append(b, s.EvictionEvents...)
	}
	b = s.SpecDecoding.append(msgp.AppendString(b, "spec_decoding_stats"))
	b = appendRawField(b, "kv_connector_stats", s.KVConnector)
	b = appendLoRACounts(msgp.AppendString(b, "waiting_lora_adapters"), s.WaitingLoRAs)
	b = appendLoRACounts(msgp.AppendString(b, "running_lora_adapters"), s.RunningLoRAs)
	b = appendRawField(b, "cudagraph_stats", s.CUDAGraph)
	b = appendRawField(b, "perf_stats", s.Perf)
	if v.AtLeast(33) {
		b = appendMapOf(msgp.AppendString(b, "num_kv_fetch_reqs_by_stage"), s.FetchingByStage)
		b = appendRawField(b, "ec_connector_stats", s.ECConnector)
	}
	return b
}

// appendMapOf writes an opaque map; nothing is an empty one.
func appendMapOf(b []byte, raw msgp.Raw) []byte {
	if len(raw) == 0 {
		return msgp.AppendMapHeader(b, 0)
	}
	return append(b, raw...)
}

func (p *PrefixCacheStats) append(b []byte, v Version) []byte {
	if p == nil {
		return msgp.AppendNil(b)
	}
	n := uint32(7)
	if v.AtLeast(33) {
		n = 8
	}
	b = msgp.AppendMapHeader(b, n)
	b = appendBoolField(b, "reset", p.Reset)
	b = appendUintField(b, "requests", p.Requests)
	b = appendUintField(b, "queries", p.Queries)
	b = appendUintField(b, "hits", p.Hits)
	b = appendUintField(b, "preempted_requests", p.PreemptedRequests)
	b = appendUintField(b, "preempted_queries", p.PreemptedQueries)
	b = appendUintField(b, "preempted_hits", p.PreemptedHits)
	if n > 7 {
		b = appendMapOf(msgp.AppendString(b, "hits_by_source"), p.HitsBySource)
	}
	return b
}

func (s *SpecDecodingStats) append(b []byte) []byte {
	if s == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, 6)
	b = appendUintField(b, "num_spec_tokens", s.SpecTokens)
	b = appendUintField(b, "num_drafts", s.Drafts)
	b = appendUintField(b, "num_draft_tokens", s.DraftTokens)
	b = appendUintField(b, "num_accepted_tokens", s.AcceptedTokens)
	b = appendUints(msgp.AppendString(b, "num_accepted_tokens_per_pos"), s.AcceptedByPosition)
	return appendUints(msgp.AppendString(b, "num_draft_tokens_per_pos"), s.DraftedByPosition)
}

func appendLoRACounts(b []byte, counts []LoRACount) []byte {
	b = msgp.AppendMapHeader(b, uint32(len(counts)))
	for _, c := range counts {
		b = appendUintField(b, c.Name, c.Count)
	}
	return b
}
