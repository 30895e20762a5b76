package worker

import (
	"cmp"
	"fmt"

	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
)

// unlimitedModelLen is what a frontend is told where requests may be of any length.
const unlimitedModelLen = 1 << 20

// unlimitedLoras is what a frontend is told where any number of adapters may be in use.
const unlimitedLoras = 1 << 10

// readyResponse is what an engine tells a frontend of itself when it registers. It holds the values of the start: a patch
// doesn't change what a frontend was told.
func readyResponse(v enginecore.Version, s ipc.Start, stats, coordIn, coordOut string) *enginecore.ReadyResponse {
	c := s.Config
	length := c.MaxModelLen
	if length == 0 {
		length = unlimitedModelLen
	}
	tokens := c.KVCacheSize * c.TokensPerBlock
	coordinated := coordIn != ""
	return &enginecore.ReadyResponse{
		MaxModelLen:               length,
		GPUBlocks:                 c.KVCacheSize,
		BlockSize:                 c.TokensPerBlock,
		StatsAddress:              stats,
		DType:                     "float32",
		Version:                   v.String(),
		WorldSize:                 1,
		DataParallelSize:          uint64(v.DataParallelSize(uint32(c.EngineCount), coordinated)),
		TensorParallelSize:        1,
		PipelineParallelSize:      1,
		DecodeContextParallelSize: 1,
		DataParallelRank:          rank(s),
		MaxNumSeqs:                c.MaxNumSeqs,
		MaxNumBatchedTokens:       c.MaxNumBatchedTokens,
		InstanceID:                instanceID(c.EngineID, s.Index),
		SupportsLoRA:              true,
		MaxLoRAs:                  cmp.Or(c.MaxLoras, unlimitedLoras),
		KVCacheTokens:             enginecore.Some(tokens),
		KVCacheConcurrency:        enginecore.Some(float64(tokens) / float64(length)),
		CoordinatorInput:          coordIn,
		CoordinatorOutput:         coordOut,
	}
}

func instanceID(id string, index int) string {
	if index == 0 {
		return id
	}
	return fmt.Sprintf("%s-%d", id, index)
}
