package engine

import "math/rand/v2"

// The purposes of random streams. Each has its own, so that drawing for one never changes another.
const (
	purposeFailures uint64 = iota + 1
	purposeLatency
	purposeTokens
	purposeOwn // of what one request draws for itself
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

// mix is SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection whose every output bit depends on every input bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
