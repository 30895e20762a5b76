// Package tokenizer turns text into token ids and back, with a vocabulary that is part of the binary.
//
// The vocabulary is OpenAI's cl100k_base: 100,256 ordinary tokens, and behind them the special ones of this project (see
// [Tokenizer.Chat]). It stands in for the tokenizer of whatever model a frontend claims to serve, so no name needs a
// download.
//
// It guarantees:
//   - text that a user sends is ordinary text: no spelling of it gives a special id;
//   - ids decode to the bytes they were made from, and every prefix of a stream is valid UTF-8;
//   - time and memory grow linearly with text, ids and stop strings, whatever their content;
//   - a Tokenizer may be used by any number of goroutines at once.
//
// It must never know about HTTP, requests or engines.
package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

const (
	// MaxTokenBytes is the length of the longest token's text. Text of more than n × MaxTokenBytes bytes has more than n tokens,
	// which a caller can tell without encoding it.
	MaxTokenBytes = 128
	// Ordinary is the number of tokens that text can have. Their ids are below it, special ids begin with it.
	Ordinary = 100_256
	// Size is the number of ids, special ones included.
	Size = Ordinary + uint32(len(specialNames))
)

// Tokenizer is a vocabulary that is ready for use. Make it with [New].
type Tokenizer struct {
	codec  *codec.Codec
	words  map[string]uint32 // the ids of words that are one token
	bytes  string            // of all ids, one after the other
	starts []uint32          // of id i in bytes; one more than there are ids
}

// New loads the vocabulary. Nothing of it is loaded when a program starts, so that only those pay who use it. Call it once:
// tokenizers share the part that encodes, but each has its own table for decoding.
func New() (*Tokenizer, error) {
	t := &Tokenizer{codec: codec.NewCl100kBase(), starts: make([]uint32, 0, Size+1)}
	text := make([]byte, 0, 1<<20)
	for id := range Size {
		t.starts = append(t.starts, uint32(len(text)))
		if id >= Ordinary {
			text = append(text, specialNames[id-Ordinary]...)
			continue
		}
		token, err := t.codec.Decode([]uint{uint(id)})
		if err != nil {
			return nil, fmt.Errorf("vocabulary: id %d: %w", id, err)
		}
		text = append(text, token...)
	}
	t.starts = append(t.starts, uint32(len(text)))
	t.bytes = string(text)
	t.words = make(map[string]uint32, Ordinary)
	for id := range uint32(Ordinary) {
		t.words[t.Bytes(id)] = id
	}
	return t, nil
}

// Size returns how many ids there are; every id is below it.
func (t *Tokenizer) Size() int { return int(Size) }

// EOS returns the id that ends a text, as models know one.
func (t *Tokenizer) EOS() uint32 { return EndOfText }

// Bytes returns the text of one id, or "" where id is not below [Size]. It may be part of a character.
func (t *Tokenizer) Bytes(id uint32) string {
	if id >= Size {
		return ""
	}
	return t.bytes[t.starts[id]:t.starts[id+1]]
}

// Decode returns the text of ids, special ones by name. Bytes that are no UTF-8 become U+FFFD, one for each beginning of a
// character that does not go on. An id that is not below [Size] is an error.
func (t *Tokenizer) Decode(ids []uint32) (string, error) {
	if i := slices.IndexFunc(ids, func(id uint32) bool { return id >= Size }); i >= 0 {
		return "", fmt.Errorf("token id %d at position %d: want below %d", ids[i], i, Size)
	}
	var (
		u    utf8Stream
		text = make([]byte, 0, 4*len(ids))
	)
	for _, id := range ids {
		text = u.append(text, t.Bytes(id))
	}
	return string(u.flush(text)), nil
}

// Encode returns the ids of text, all of them ordinary. What is no UTF-8 is read as U+FFFD.
//
// They are those of tiktoken, but for two things. A stretch of more than 32 KiB without a place where tokens must part, such as a
// single word of that length, is cut there, so that no text costs more than its length. And where other than plain ASCII is near,
// space with several line ends in it is cut behind each, which is the codec's doing.
func (t *Tokenizer) Encode(text string) []uint32 { return t.append(nil, text) }

// append appends the ids of text, window by window.
func (t *Tokenizer) append(ids []uint32, text string) []uint32 {
	ids = slices.Grow(ids, len(text)/4)
	for len(text) > 0 {
		n := cut(text, window)
		ids = t.appendWindow(ids, text[:n])
		text = text[n:]
	}
	return ids
}

func (t *Tokenizer) appendWindow(ids []uint32, text string) []uint32 {
	if !plain(text) {
		return t.appendAny(ids, text)
	}
	for len(text) > 0 {
		n := wordLength(text)
		ids = t.appendWord(ids, text[:n])
		text = text[n:]
	}
	return ids
}

// appendWord appends the ids of a plain word.
func (t *Tokenizer) appendWord(ids []uint32, word string) []uint32 {
	if id, ok := t.words[word]; ok {
		return append(ids, id)
	}
	if len(word) <= longestMerged {
		return t.merge(ids, word)
	}
	return t.appendAny(ids, word)
}

// appendAny appends the ids of text in the codec's own way.
func (t *Tokenizer) appendAny(ids []uint32, text string) []uint32 {
	part, _, err := t.codec.Encode(strings.ReplaceAll(text, del, standIn))
	if err != nil {
		panic(fmt.Sprintf("tokenizer: %v, though a window is shorter than its limits", err))
	}
	first := len(ids)
	for _, id := range part {
		ids = append(ids, uint32(id))
	}
	if strings.Contains(text, del) {
		restoreDeletes(ids[first:], text)
	}
	return ids
}

// Valid returns text with U+FFFD in place of what is no UTF-8, as [Tokenizer.Decode] does.
func Valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var u utf8Stream
	return string(u.flush(u.append(nil, text)))
}
