package engine

import (
	"math/bits"
	"math/rand/v2"
)

// The purposes of random streams. Each has its own, so that drawing for one never changes another.
const (
	purposeFailures uint64 = iota + 1
	purposeLatency
	purposeTokens
)

func stream(seed, index, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(mix(seed^mix(index)), mix(purpose)))
}

// tokenSeed starts the token stream of a request: a function of the seed, the engine's index and the id alone.
func tokenSeed(seed, index uint64, id string) uint64 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3 // FNV-1a, 64 bits
	h := uint64(offset)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * prime
	}
	return mix(h ^ mix(seed^mix(index)^mix(purposeTokens)))
}

// generate returns the next n tokens of r, valid until the next call: uniform in [0, vocabulary).
func (e *Engine) generate(r *Request, n uint64) []uint32 {
	e.tokens = e.tokens[:0]
	for range n {
		r.random += golden
		hi, _ := bits.Mul64(mix(r.random), uint64(e.cfg.VocabSize))
		e.tokens = append(e.tokens, uint32(hi))
	}
	return e.tokens
}

// golden is 2^64 divided by the golden ratio, the step of a SplitMix64 sequence.
const golden = 0x9e3779b97f4a7c15

// mix is SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection whose every output bit depends on every input bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
