package worker

import (
	"vllm-vcr/config"
	"vllm-vcr/worker/engine"
)

// params translates what a PATCH can change into the engine's terms.
func params(l config.Live) engine.Params {
	types := make([]engine.Finish, len(l.FailureTypes))
	for i, word := range l.FailureTypes {
		types[i] = failureFinish[word]
	}
	return engine.Params{
		TTFT:             engine.Milliseconds(l.TimeToFirstToken),
		TTFTStdDev:       engine.Milliseconds(l.TimeToFirstTokenStdDev),
		ITL:              engine.Milliseconds(l.InterTokenLatency),
		ITLStdDev:        engine.Milliseconds(l.InterTokenStdDev),
		PrefillOverhead:  engine.Milliseconds(l.PrefillOverhead),
		PrefillPerToken:  engine.Milliseconds(l.PrefillTimePerToken),
		PrefillStdDev:    engine.Milliseconds(l.PrefillTimeStdDev),
		LoadFactor:       l.TimeFactorUnderLoad,
		MaxSeqs:          l.MaxNumSeqs,
		MaxBatchedTokens: l.MaxNumBatchedTokens,
		MaxModelLen:      l.MaxModelLen,
		FailureRate:      l.FailureInjectionRate,
		FailureTypes:     types,
	}
}

var failureFinish = map[string]engine.Finish{
	config.FailError:      engine.Error,
	config.FailLength:     engine.Length,
	config.FailRepetition: engine.Repetition,
}

// engineConfig is the engine that c describes, at position index of its fleet.
func engineConfig(c config.Config, index int, source engine.Source, latency engine.Latency, counts engine.Counts) engine.Config {
	return engine.Config{
		Index:                uint64(index),
		Seed:                 c.Seed,
		ChunkSize:            c.OutputTokenChunkSize,
		Source:               source,
		LongPrefillThreshold: c.LongPrefillThreshold,
		Priority:             c.SchedulingPolicy == config.PolicyPriority,
		TimeScale:            c.TimeScale,
		Granularity:          c.StepGranularity,
		Latency:              latency,
		Counts:               counts,
		MaxLoras:             c.MaxLoras,
		BlockSize:            c.TokensPerBlock,
		Blocks:               c.KVCacheSize,
		Params:               params(c.Live),
	}
}
