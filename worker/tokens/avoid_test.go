package tokens

import (
	"slices"
	"testing"
)

func TestAvoid(t *testing.T) {
	tests := []struct {
		name       string
		ids        []uint32
		vocabulary uint32
		id, want   uint32
	}{
		{"none", nil, 10, 4, 4},
		{"another", []uint32{5}, 10, 4, 4},
		{"the id", []uint32{4}, 10, 4, 5},
		{"a run, unordered and repeated", []uint32{6, 4, 5, 4}, 10, 4, 7},
		{"within a run", []uint32{3, 4, 5}, 10, 4, 6},
		{"around the end", []uint32{8, 9}, 10, 8, 0},
		{"around the end into a run", []uint32{8, 9, 0, 1}, 10, 9, 2},
		{"all", []uint32{0, 1, 2}, 3, 1, 1},
		{"ids beyond the vocabulary", []uint32{2, 3, 1<<32 - 1}, 3, 2, 0},
		{"the largest vocabulary", []uint32{1<<32 - 2}, 1<<32 - 1, 1<<32 - 2, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := NewAvoid(tt.ids, tt.vocabulary).Next(tt.id); got != tt.want {
				t.Errorf("Next(%d) without %v of %d = %d, want %d", tt.id, tt.ids, tt.vocabulary, got, tt.want)
			}
		})
	}
}

func TestAvoid_Zero(t *testing.T) {
	if got := (Avoid{}).Next(7); got != 7 {
		t.Errorf("Next(7) without a set = %d, want 7", got)
	}
}

func FuzzAvoid(f *testing.F) {
	f.Add([]byte{3, 4, 5, 0, 9}, uint8(4), uint8(10))
	f.Fuzz(func(t *testing.T, list []byte, id, vocabulary uint8) {
		if vocabulary == 0 || id >= vocabulary {
			return
		}
		var ids []uint32
		for _, b := range list {
			ids = append(ids, uint32(b))
		}
		got := NewAvoid(ids, uint32(vocabulary)).Next(uint32(id))
		want := uint32(id)
		for range vocabulary {
			if !slices.Contains(ids, want) {
				break
			}
			want = (want + 1) % uint32(vocabulary)
		}
		if got != want {
			t.Errorf("Next(%d) without %v of %d = %d, want %d", id, ids, vocabulary, got, want)
		}
	})
}
