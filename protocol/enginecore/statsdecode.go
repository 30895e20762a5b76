package enginecore

// stats reads the map into s, overwriting it.
func (d *decoder) stats(s *SchedulerStats) {
	*s = SchedulerStats{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "num_running_reqs":
			s.Running = d.uint()
		case "num_waiting_reqs":
			s.Waiting = d.uint()
		case "num_skipped_waiting_reqs":
			s.SkippedWaiting = d.uint()
		case "step_counter":
			s.StepCounter = d.uint()
		case "current_wave":
			s.CurrentWave = d.uint()
		case "kv_cache_usage":
			s.KVCacheUsage = d.float()
		case "prefix_cache_stats":
			d.prefixCache(&s.PrefixCache)
		default:
			d.statsDetail(s, key)
		}
	})
}

func (d *decoder) statsDetail(s *SchedulerStats, key []byte) {
	switch string(key) {
	case "connector_prefix_cache_stats":
		if !d.null() {
			s.Connector = new(PrefixCacheStats)
			d.prefixCache(s.Connector)
		}
	case "spec_decoding_stats":
		s.SpecDecoding = d.specDecoding()
	case "waiting_lora_adapters":
		s.WaitingLoRAs = d.loraCounts()
	case "running_lora_adapters":
		s.RunningLoRAs = d.loraCounts()
	case "iteration_details":
		s.IterationDetails = d.raw()
	case "kv_cache_eviction_events":
		s.EvictionEvents = d.raw()
	case "kv_connector_stats":
		s.KVConnector = d.raw()
	case "cudagraph_stats":
		s.CUDAGraph = d.raw()
	case "perf_stats":
		s.Perf = d.raw()
	case "num_kv_fetch_reqs_by_stage":
		s.FetchingByStage = d.raw()
	case "ec_connector_stats":
		s.ECConnector = d.raw()
	default:
		d.skip()
	}
}

func (d *decoder) prefixCache(p *PrefixCacheStats) {
	d.fields(func(key []byte) {
		switch string(key) {
		case "reset":
			p.Reset = d.bool()
		case "requests":
			p.Requests = d.uint()
		case "queries":
			p.Queries = d.uint()
		case "hits":
			p.Hits = d.uint()
		case "preempted_requests":
			p.PreemptedRequests = d.uint()
		case "preempted_queries":
			p.PreemptedQueries = d.uint()
		case "preempted_hits":
			p.PreemptedHits = d.uint()
		case "hits_by_source":
			p.HitsBySource = d.raw()
		default:
			d.skip()
		}
	})
}

func (d *decoder) specDecoding() *SpecDecodingStats {
	if d.null() {
		return nil
	}
	s := &SpecDecodingStats{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "num_spec_tokens":
			s.SpecTokens = d.uint()
		case "num_drafts":
			s.Drafts = d.uint()
		case "num_draft_tokens":
			s.DraftTokens = d.uint()
		case "num_accepted_tokens":
			s.AcceptedTokens = d.uint()
		case "num_accepted_tokens_per_pos":
			s.AcceptedByPosition = d.uints(nil)
		case "num_draft_tokens_per_pos":
			s.DraftedByPosition = d.uints(nil)
		default:
			d.skip()
		}
	})
	return s
}

// loraCounts reads a map in its own order.
func (d *decoder) loraCounts() []LoRACount {
	var counts []LoRACount
	d.fields(func(key []byte) {
		counts = append(counts, LoRACount{Name: string(key), Count: d.uint()})
	})
	return counts
}
