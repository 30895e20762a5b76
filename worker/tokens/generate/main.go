// Command generate writes the table of package tokens: prose.txt as token ids of the vocabulary that the frontend uses, with the places
// where a reader may begin. `go generate ./worker/tokens` runs it after a change of the prose.
package main

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"unicode"

	"vllm-vcr/frontend/tokenizer"
)

//go:embed prose.txt
var prose string

func main() {
	if err := run("table.bin"); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	t, err := tokenizer.New()
	if err != nil {
		return err
	}
	return os.WriteFile(path, appendTable(nil, makeTable(t, prose)), 0o644)
}

// table is a text that begins at any of its starts, and begins anew behind its end.
type table struct {
	ids    []uint32
	starts []start
}

// start is a place where a sentence begins.
type start struct {
	at    int    // index of the sentence's first token
	first uint32 // that token's id without the space before the word, as a text begins with it
}

// makeTable encodes text, whose paragraphs are parted by empty lines and whose last one ends with such a line too, so that the first
// may follow it.
func makeTable(t *tokenizer.Tokenizer, text string) table {
	text = strings.TrimSpace(text) + "\n\n"
	table := table{ids: t.Encode(text)}
	at := 0
	for i, id := range table.ids {
		token := t.Bytes(id)
		if first, ok := opening(t, token); ok && beginsSentence(text[:at]) {
			table.starts = append(table.starts, start{at: i, first: first})
		}
		at += len(token)
	}
	return table
}

// opening returns the id of token without a space before it, if it is a capitalised word and has such an id.
func opening(t *tokenizer.Tokenizer, token string) (uint32, bool) {
	word := strings.TrimPrefix(token, " ")
	if word == "" || !unicode.IsUpper(rune(word[0])) {
		return 0, false
	}
	ids := t.Encode(word)
	return ids[0], len(ids) == 1
}

// beginsSentence says that a sentence ends where before ends.
func beginsSentence(before string) bool {
	return before == "" || strings.HasSuffix(before, "\n\n") || strings.ContainsAny(before[len(before)-1:], ".?!")
}

// appendTable appends the form that package tokens reads, all of it unsigned varints:
//
//	number of ids, ids
//	number of starts, and for each its distance from the start before it (the first: from 0) and its first id
func appendTable(b []byte, t table) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.ids)))
	for _, id := range t.ids {
		b = binary.AppendUvarint(b, uint64(id))
	}
	b = binary.AppendUvarint(b, uint64(len(t.starts)))
	last := 0
	for _, s := range t.starts {
		b = binary.AppendUvarint(b, uint64(s.at-last))
		b = binary.AppendUvarint(b, uint64(s.first))
		last = s.at
	}
	return b
}
