package logprobs

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func row(r *Rows, i int) (ids []uint32, logprobs []float64, rank uint32) {
	for c := range r.Width {
		at := 4 * (i*r.Width + c)
		ids = append(ids, binary.LittleEndian.Uint32(r.TokenIDs[at:]))
		logprobs = append(logprobs, float64(math.Float32frombits(binary.LittleEndian.Uint32(r.Logprobs[at:]))))
	}
	return ids, logprobs, binary.LittleEndian.Uint32(r.Ranks[4*i:])
}

// TestRows_HangTogether checks, for any model and token, all that a reader of probabilities can check.
func TestRows_HangTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Model{Seed: rapid.Uint64().Draw(t, "seed"), Vocabulary: rapid.Uint32Range(1, 50).Draw(t, "vocabulary"), Greedy: rapid.Bool().Draw(t, "greedy")}
		top := rapid.IntRange(All, 60).Draw(t, "top")
		var rows Rows
		rows.Reset(m, top)
		tokens := rapid.SliceOfN(rapid.Uint32Range(0, m.Vocabulary-1), 1, 20).Draw(t, "tokens")
		for i, token := range tokens {
			rows.Append(m, uint64(i), token)
		}
		for i, token := range tokens {
			checkRow(t, m, &rows, i, token)
		}
	})
}

func checkRow(t *rapid.T, m Model, rows *Rows, i int, token uint32) {
	ids, logprobs, rank := row(rows, i)
	if ids[0] != token || rank < 1 || rank > m.Vocabulary || m.Greedy && rank != 1 {
		t.Fatalf("row %d: token %d of rank %d, want %d", i, ids[0], rank, token)
	}
	seen, sum := map[uint32]bool{}, 0.0
	for place := 1; place < len(ids); place++ {
		id, p := ids[place], logprobs[place]
		if id >= m.Vocabulary || seen[id] {
			t.Fatalf("row %d: token %d in place %d is no token, or comes twice", i, id, place)
		}
		if place > 1 && p >= logprobs[place-1] {
			t.Fatalf("row %d: logprob %v in place %d, after %v", i, p, place, logprobs[place-1])
		}
		if (id == token) != (place == int(rank)) || id == token && p != logprobs[0] {
			t.Fatalf("row %d: token %d of rank %d stands in place %d with %v, not %v", i, id, rank, place, p, logprobs[0])
		}
		seen[id] = true
		sum += math.Exp(p)
	}
	if int(rank) >= len(ids) {
		sum += math.Exp(logprobs[0])
	}
	if sum >= 1 {
		t.Fatalf("row %d: probabilities add up to %v", i, sum)
	}
}

func TestRows_WholeVocabulary(t *testing.T) {
	m := Model{Vocabulary: 7}
	var rows Rows
	rows.Reset(m, All)
	rows.Append(m, 3, 5)
	if rows.Width != 8 || len(rows.TokenIDs) != 32 || len(rows.Ranks) != 4 {
		t.Errorf("width %d with %d bytes of ids and %d of ranks, want 8, 32, 4", rows.Width, len(rows.TokenIDs), len(rows.Ranks))
	}
}

func TestRows_OnlyTheToken(t *testing.T) {
	m := Model{Vocabulary: 7}
	var rows Rows
	rows.Reset(m, 0)
	rows.Append(m, 3, 5)
	if ids, _, _ := row(&rows, 0); len(ids) != 1 || ids[0] != 5 {
		t.Errorf("ids %v, want just the token, 5", ids)
	}
}
