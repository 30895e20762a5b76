package tokenizer

import (
	"math"
	"slices"
)

// longestMerged is the most bytes that merge takes: its time grows with the square of them.
const longestMerged = 256

// part is a piece of a word that is being merged; the last one is empty and stands behind the word.
type part struct {
	start int
	pair  uint32 // the token that this part and the next one make, or noToken
}

const noToken = math.MaxUint32

// merge appends the ids of a word that is no token itself, of at most longestMerged bytes: of all neighbours that make a token,
// those that make the earliest one of the vocabulary are joined, until there are none.
func (t *Tokenizer) merge(ids []uint32, word string) []uint32 {
	var memory [longestMerged + 1]part
	parts := memory[:len(word)+1]
	for i := range parts {
		parts[i].start = i
	}
	for i := range parts {
		parts[i].pair = t.pair(word, parts[i:])
	}
	for {
		first := earliest(parts)
		if parts[first].pair == noToken {
			break
		}
		parts = slices.Delete(parts, first+1, first+2)
		for i := max(0, first-1); i <= first; i++ {
			parts[i].pair = t.pair(word, parts[i:])
		}
	}
	for i, p := range parts[:len(parts)-1] {
		ids = append(ids, t.words[word[p.start:parts[i+1].start]])
	}
	return ids
}

// pair is the token that the first two of parts make.
func (t *Tokenizer) pair(word string, parts []part) uint32 {
	if len(parts) < 3 {
		return noToken
	}
	if id, ok := t.words[word[parts[0].start:parts[2].start]]; ok {
		return id
	}
	return noToken
}

func earliest(parts []part) int {
	first := 0
	for i := range parts {
		if parts[i].pair < parts[first].pair {
			first = i
		}
	}
	return first
}
