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

// Source makes the tokens of answers. It is a pure function: what a request is answered depends on nothing else.
type Source interface {
	// Token returns the token at a position, counted from 0, of the answer to a request with this seed and prompt. It
	// must not keep the prompt.
	Token(seed, position uint64, prompt []uint32) uint32
}

// uniform is the source that is used where none is given: tokens are uniform in [0, vocabulary).
type uniform struct{ vocabulary uint64 }

func (u uniform) Token(seed, position uint64, _ []uint32) uint32 {
	hi, _ := bits.Mul64(mix(seed+(position+1)*golden), u.vocabulary)
	return uint32(hi)
}

// golden is 2^64 divided by the golden ratio, the step of a SplitMix64 sequence.
const golden = 0x9e3779b97f4a7c15

// mix is SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection whose every output bit depends on every input bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
