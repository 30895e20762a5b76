package tokens

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

//go:generate go run ./generate

//go:embed table.bin
var tableFile []byte

// text is prose that a request enters at the beginning of a sentence, which its seed chooses. From there it goes on, over the end of
// the prose to its beginning.
type text struct {
	ids    []uint32
	starts []start
}

// start is a place where a sentence begins.
type start struct {
	at    uint64 // index of the sentence's first token
	first uint32 // that token without the space before the word, as a text begins with it
}

func newText(vocabulary uint32) (text, error) {
	t, err := parseTable(tableFile)
	if err != nil {
		return text{}, err
	}
	if largest := t.largest(); largest >= vocabulary {
		return text{}, fmt.Errorf("vocabulary of %d ids, want at least %d for token source %q", vocabulary, largest+1, NameText)
	}
	return t, nil
}

func (t text) Token(seed, position uint64, _ []uint32) uint32 {
	i, _ := bits.Mul64(mix(seed), uint64(len(t.starts)))
	s := t.starts[i]
	if position == 0 {
		return s.first
	}
	n := uint64(len(t.ids))
	return t.ids[(s.at+position%n)%n]
}

// largest is the largest id that Token may return.
func (t text) largest() uint32 {
	var largest uint32
	for _, id := range t.ids {
		largest = max(largest, id)
	}
	for _, s := range t.starts {
		largest = max(largest, s.first)
	}
	return largest
}

// parseTable reads what ./generate writes, all of it unsigned varints:
//
//	number of ids, ids
//	number of starts, and for each its distance from the start before it (the first: from 0) and its first id
func parseTable(b []byte) (text, error) {
	r := reader{left: b}
	t := text{ids: make([]uint32, r.count())}
	for i := range t.ids {
		t.ids[i] = r.id()
	}
	t.starts = make([]start, r.count())
	at := uint64(0)
	for i := range t.starts {
		at += r.next()
		if at >= uint64(len(t.ids)) {
			r.fail("table: start %d at token %d of %d", i, at, len(t.ids))
		}
		t.starts[i] = start{at: at, first: r.id()}
	}
	if len(t.ids) == 0 || len(t.starts) == 0 {
		r.fail("table: %d ids and %d starts, want some of both", len(t.ids), len(t.starts))
	}
	if len(r.left) > 0 {
		r.fail("table: %d bytes behind its end", len(r.left))
	}
	return t, r.err
}

// reader takes numbers off a table. After the first fault it gives zeros.
type reader struct {
	left []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.left = nil
}

func (r *reader) next() uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.fail("table: cut within a number")
		return 0
	}
	r.left = r.left[n:]
	return v
}

// count reads how many numbers follow, each of at least one byte.
func (r *reader) count() uint64 {
	n := r.next()
	if n > uint64(len(r.left)) {
		r.fail("table: %d entries in %d bytes", n, len(r.left))
		return 0
	}
	return n
}

func (r *reader) id() uint32 {
	v := r.next()
	if v > math.MaxUint32 {
		r.fail("table: id %d, want at most %d", v, uint32(math.MaxUint32))
		return 0
	}
	return uint32(v)
}
