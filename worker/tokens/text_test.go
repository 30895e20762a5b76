package tokens

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"vllm-vcr/fuzzlimit"
)

func TestText(t *testing.T) {
	s, err := newText(100_256)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.ids); n < 4000 || n > 8000 {
		t.Errorf("the text has %d tokens, want 4000 … 8000", n)
	}
	begins := map[uint32]bool{}
	for seed := range uint64(2000) {
		begins[s.Token(seed, 0, nil)] = true
	}
	if len(begins) < 20 {
		t.Errorf("2000 requests begin with %d different tokens, want at least 20", len(begins))
	}
}

func TestText_Wraps(t *testing.T) {
	s := text{ids: []uint32{10, 11, 12, 13}, starts: []start{{at: 2, first: 99}}}
	want := []uint32{99, 13, 10, 11, 12, 13, 10}
	if got := take(s, 1, nil, 7); !slices.Equal(got, want) {
		t.Errorf("text gave %v, want %v", got, want)
	}
	if got := s.Token(1, math.MaxUint64, nil); got != 11 {
		t.Errorf("text at the last position gave %d, want 11", got)
	}
}

func numbers(list ...uint64) []byte {
	var b []byte
	for _, v := range list {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func TestParseTable(t *testing.T) {
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"whole", numbers(3, 5, 6, 7, 2, 0, 8, 2, 9), ""},
		{"nothing", nil, "table: cut within a number"},
		{"no ids", numbers(0, 0), "table: 0 ids and 0 starts, want some of both"},
		{"no starts", numbers(1, 5, 0), "table: 1 ids and 0 starts, want some of both"},
		{"more ids than bytes", numbers(1<<62, 5), "table: 4611686018427387904 entries in 1 bytes"},
		{"cut", numbers(2, 5, 300)[:3], "table: cut within a number"},
		{"large id", numbers(1, 1<<32, 1, 0, 0), "table: id 4294967296, want at most 4294967295"},
		{"start behind the end", numbers(2, 5, 6, 1, 2, 5), "table: start 0 at token 2 of 2"},
		{"more behind it", numbers(1, 5, 1, 0, 5, 0, 0), "table: 2 bytes behind its end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseTable(tt.file)
			if err == nil {
				if tt.want != "" {
					t.Errorf("parseTable gave no error, want %q", tt.want)
				}
				return
			}
			if err.Error() != tt.want {
				t.Errorf("parseTable gave error %q, want %q", err, tt.want)
			}
		})
	}
}

func FuzzParseTable(f *testing.F) {
	f.Add(tableFile)
	f.Add(numbers(3, 5, 6, 7, 2, 0, 8, 2, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer fuzzlimit.Watch(t, len(b))()
		s, err := parseTable(b)
		if err != nil {
			return
		}
		for position := range uint64(len(s.ids)) + 2 {
			if id := s.Token(uint64(len(b)), position, nil); id > s.largest() {
				t.Fatalf("position %d gave id %d, want at most %d", position, id, s.largest())
			}
		}
	})
}
