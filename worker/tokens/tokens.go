// Package tokens says which tokens a simulated engine generates: readable text, random ids, or the prompt again.
//
// A [Source] is a pure function of a request's seed, the position in its output and its prompt, so what a request gets depends on
// nothing else: not on its neighbours, on time, or on how many tokens a step makes. It keeps no state, allocates nothing and may
// be used by any number of goroutines.
//
// The package knows ids only. It must never know a tokenizer, the wire or an engine: its text is a table made beforehand.
package tokens

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// The names of the sources.
const (
	NameText   = "text"
	NameRandom = "random"
	NameEcho   = "echo"
)

// Names are the sources that [New] makes.
var Names = []string{NameText, NameRandom, NameEcho}

// Source gives the tokens of requests.
type Source interface {
	// Token returns the id at a position, from 0 on, of the output of a request with this seed and prompt. It is below the
	// vocabulary's size. Token does not keep or change prompt.
	Token(seed, position uint64, prompt []uint32) uint32
}

// New returns the source of a name whose ids are below vocabulary, which is at least 1. Text needs a vocabulary that holds its
// table.
func New(name string, vocabulary uint32) (Source, error) {
	if vocabulary == 0 {
		return nil, errors.New("vocabulary of 0 ids, want at least 1")
	}
	switch name {
	case NameText:
		return newText(vocabulary)
	case NameRandom:
		return random{size: uint64(vocabulary)}, nil
	case NameEcho:
		return echo{random{size: uint64(vocabulary)}}, nil
	default:
		return nil, fmt.Errorf("token source %q, want one of %s", name, strings.Join(Names, ", "))
	}
}

// random draws every id with equal chances.
type random struct{ size uint64 }

func (r random) Token(seed, position uint64, _ []uint32) uint32 {
	hi, _ := bits.Mul64(mix(seed+(position+1)*golden), r.size)
	return uint32(hi)
}

// echo says the prompt over and over. Of an id beyond the vocabulary it takes the remainder; without a prompt it is random.
type echo struct{ random }

func (e echo) Token(seed, position uint64, prompt []uint32) uint32 {
	if len(prompt) == 0 {
		return e.random.Token(seed, position, nil)
	}
	return uint32(uint64(prompt[position%uint64(len(prompt))]) % e.size)
}

// golden is 2^64 divided by the golden ratio, the step of a SplitMix64 sequence.
const golden = 0x9e3779b97f4a7c15

// mix is SplitMix64's finaliser: a bijection whose every output bit depends on every input bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
