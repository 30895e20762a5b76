package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vllm-vcr/frontend/tokenizer"
)

func vocabulary(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	v, err := tokenizer.New()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTableIsCurrent holds that the table in the repository is the one that the prose makes.
func TestTableIsCurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.bin")
	if err := run(path); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../table.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("table.bin has %d bytes and is not what prose.txt gives (%d bytes); run `go generate ./worker/tokens`", len(got), len(want))
	}
}

// TestStarts holds that the text from each start is whole sentences, encoded as the tokenizer would encode them.
func TestStarts(t *testing.T) {
	v := vocabulary(t)
	table := makeTable(v, prose)
	if n := len(table.ids); n < 4000 || n > 8000 {
		t.Errorf("the prose has %d tokens, want 4000 … 8000", n)
	}
	if n, want := len(table.starts), strings.Count(prose, ". "); n < want/2 {
		t.Errorf("%d places to begin, want at least half as many as sentences, %d", n, want)
	}
	for _, s := range table.starts {
		ids := append([]uint32{s.first}, table.ids[s.at+1:min(s.at+40, len(table.ids))]...)
		text, err := v.Decode(ids)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(prose, text) && !strings.HasSuffix(text, "\n\n") {
			t.Errorf("start %d gives %q, which is not in the prose", s.at, text)
		}
		if !slices.Equal(v.Encode(text), ids) {
			t.Errorf("start %d gives %q, which the tokenizer encodes in another way", s.at, text)
		}
	}
}
