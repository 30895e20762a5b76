// Package logprobs makes up log probabilities that hang together: the token that was given has the rank it is said to have,
// more likely tokens come before less likely ones, nothing comes twice, and probabilities add up to less than one.
//
// What it says of a token is a function of the request's seed and the position alone. It must never know where tokens
// come from or how they are sent.
package logprobs

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// All asks for the whole vocabulary.
const All = -1

// Model is the made-up language model of one request.
type Model struct {
	Seed       uint64
	Vocabulary uint32 // token ids are below it, at least 1
	Greedy     bool   // the most likely token is always the one given
}

// Rows is what is said of some positions, one row each, in the layout of vLLM's LogprobsLists: the bytes of little-endian
// arrays.
type Rows struct {
	Count    int
	Width    int    // columns: the token that was given, then the most likely ones in order
	TokenIDs []byte // int32, [Count, Width]
	Logprobs []byte // float32, [Count, Width]
	Ranks    []byte // int32, [Count]: of the token that was given, from 1
}

// Width is the number of columns where the top most likely tokens are asked for, or All.
func (m Model) Width(top int) int {
	if top == All || top > int(m.Vocabulary) {
		top = int(m.Vocabulary)
	}
	return top + 1
}

// Reset empties r for rows with the top most likely tokens, or All.
func (r *Rows) Reset(m Model, top int) {
	*r = Rows{Width: m.Width(top), TokenIDs: emptied(r.TokenIDs), Logprobs: emptied(r.Logprobs), Ranks: emptied(r.Ranks)}
}

// emptied keeps a buffer's memory, unless that is so much that only a whole vocabulary fills it.
func emptied(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b[:0]
}

// Append adds the row of the token at a position.
func (r *Rows) Append(m Model, position uint64, token uint32) {
	h := mix(m.Seed ^ mix(position))
	rank := m.rank(h)
	r.Count++
	r.column(token, logprob(rank))
	r.Ranks = binary.LittleEndian.AppendUint32(r.Ranks, rank)
	next := uint32(h>>32) % m.Vocabulary
	for place := uint32(1); place < uint32(r.Width); place++ {
		if place == rank {
			r.column(token, logprob(place))
			continue
		}
		if next == token {
			next = (next + 1) % m.Vocabulary
		}
		r.column(next, logprob(place))
		next = (next + 1) % m.Vocabulary
	}
}

func (r *Rows) column(token uint32, logprob float64) {
	r.TokenIDs = binary.LittleEndian.AppendUint32(r.TokenIDs, token)
	r.Logprobs = binary.LittleEndian.AppendUint32(r.Logprobs, math.Float32bits(float32(logprob)))
}

// rank draws how likely the token was: first half of the time, second a quarter …
func (m Model) rank(h uint64) uint32 {
	if m.Greedy {
		return 1
	}
	return min(1+uint32(bits.TrailingZeros32(uint32(h)|1<<31)), m.Vocabulary)
}

// The token of rank n has the probability first × ratio^(n−1); all of them together first / (1 − ratio), less than one.
const (
	first = 0.58
	ratio = 0.4
)

func logprob(rank uint32) float64 { return math.Log(first) + float64(rank-1)*math.Log(ratio) }

// mix is SplitMix64's finaliser (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
