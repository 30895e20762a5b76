package tokens

import (
	"slices"
	"testing"
)

func source(t testing.TB, name string, vocabulary uint32) Source {
	t.Helper()
	s, err := New(name, vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take gives the ids of positions 0 … n-1.
func take(s Source, seed uint64, prompt []uint32, n uint64) []uint32 {
	var ids []uint32
	for position := range n {
		ids = append(ids, s.Token(seed, position, prompt))
	}
	return ids
}

func TestNew(t *testing.T) {
	tests := []struct {
		name       string
		source     string
		vocabulary uint32
		want       string
	}{
		{"no such source", "poem", 100, `token source "poem", want one of text, random, echo`},
		{"no name", "", 100, `token source "", want one of text, random, echo`},
		{"no vocabulary", NameRandom, 0, "vocabulary of 0 ids, want at least 1"},
		{"vocabulary without the text", NameText, 300, `vocabulary of 300 ids, want at least 96548 for token source "text"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.source, tt.vocabulary)
			if err == nil {
				t.Fatalf("New(%q, %d) gave no error, want %q", tt.source, tt.vocabulary, tt.want)
			}
			if err.Error() != tt.want {
				t.Errorf("New(%q, %d) gave error %q, want %q", tt.source, tt.vocabulary, err, tt.want)
			}
		})
	}
}

func TestEcho(t *testing.T) {
	s := source(t, NameEcho, 10)
	if got, want := take(s, 1, []uint32{7, 8, 19}, 7), []uint32{7, 8, 9, 7, 8, 9, 7}; !slices.Equal(got, want) {
		t.Errorf("echo of 7 8 19 gave %v, want %v", got, want)
	}
	if got, want := take(s, 1, nil, 20), take(source(t, NameRandom, 10), 1, nil, 20); !slices.Equal(got, want) {
		t.Errorf("echo of no prompt gave %v, want the random %v", got, want)
	}
	if got := s.Token(1, 1<<64-1, []uint32{7, 8}); got != 8 {
		t.Errorf("echo of 7 8 at the last position gave %d, want 8", got)
	}
}

func TestRandom(t *testing.T) {
	const vocabulary, n = 64, 64_000
	counts := make([]int, vocabulary)
	for _, id := range take(source(t, NameRandom, vocabulary), 3, nil, n) {
		counts[id]++
	}
	for id, count := range counts {
		if count < 800 || count > 1200 {
			t.Errorf("id %d came %d times in %d, want about 1000 times", id, count, n)
		}
	}
}

// TestSources_Independent holds that the order in which positions and requests are asked for changes nothing.
func TestSources_Independent(t *testing.T) {
	prompt := []uint32{5, 6, 7}
	for _, name := range Names {
		s := source(t, name, 100_256)
		want := take(s, 11, prompt, 500)
		var got []uint32
		for position := uint64(500); position > 0; position-- {
			s.Token(12, position, nil)
			got = append(got, s.Token(11, position-1, prompt))
		}
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: asked backwards the tokens are others", name)
		}
		if name != NameEcho && slices.Equal(take(s, 12, prompt, 500), want) {
			t.Errorf("%s: two seeds give the same tokens", name)
		}
	}
}

func TestSources_Below(t *testing.T) {
	for _, vocabulary := range []uint32{1, 2, 300, 1<<32 - 1} {
		for _, name := range Names {
			s, err := New(name, vocabulary)
			if err != nil {
				continue // text, in a vocabulary without it: TestNew
			}
			for _, id := range take(s, 5, []uint32{0, 1<<32 - 1, 299}, 2000) {
				if id >= vocabulary {
					t.Fatalf("%s: id %d, want below %d", name, id, vocabulary)
				}
			}
		}
	}
}

func TestSources_Allocs(t *testing.T) {
	prompt := []uint32{1, 2, 3}
	avoid := NewAvoid([]uint32{1, 2, 9}, 100_256)
	for _, name := range Names {
		s, position := source(t, name, 100_256), uint64(0)
		n := testing.AllocsPerRun(1000, func() {
			avoid.Next(s.Token(8, position, prompt))
			position++
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a token, want none", name, n)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	prompt := []uint32{1, 2, 3}
	for _, name := range Names {
		b.Run(name, func(b *testing.B) {
			s, position := source(b, name, 100_256), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				s.Token(8, position, prompt)
				position++
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		source(b, NameText, 100_256)
	}
}
