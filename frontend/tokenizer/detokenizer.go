package tokenizer

import "unicode/utf8"

// DetokenizerOptions are how the text of one stream is made. The zero value gives the text of all ids, special ones by name.
type DetokenizerOptions struct {
	Stops       *Stops // end the text; nil = none
	IncludeStop bool   // the stop string that ends the text is part of it
	MinTokens   uint64 // a stop string that is complete within so many tokens does not count
	SkipSpecial bool   // special ids have no text
}

// Detokenizer makes the text of one stream of ids, as far as it is certain after each of them: it holds back incomplete
// characters, and text that may be the beginning of a stop string. What it has given so far is always valid UTF-8. One
// goroutine uses it at a time.
type Detokenizer struct {
	tokens *Tokenizer
	DetokenizerOptions

	text   utf8Stream
	piece  []byte // the text that the last id completed
	runes  int    // characters of piece
	offset int    // characters before piece
	fed    uint64 // ids so far

	node int32  // of Stops: what the text so far ends with
	held []byte // text held back for Stops, from index from on
	from int
	stop string // that ended the text
}

// NewDetokenizer returns a detokenizer for a new stream.
func (t *Tokenizer) NewDetokenizer(o DetokenizerOptions) *Detokenizer {
	return &Detokenizer{tokens: t, DetokenizerOptions: o}
}

// Append takes the next id of the stream and appends to dst the text that became certain. An id outside the vocabulary, as an engine
// with another one may send it, has no text. After a stop string there is no more text.
func (d *Detokenizer) Append(dst []byte, id uint32) []byte {
	if d.stop != "" {
		return dst
	}
	d.fed++
	d.offset += d.runes
	d.piece = d.piece[:0]
	if !d.SkipSpecial || !Special(id) {
		d.piece = d.text.append(d.piece, d.tokens.Bytes(id))
	}
	d.runes = utf8.RuneCount(d.piece)
	if d.Stops == nil {
		return append(dst, d.piece...)
	}
	return d.search(dst)
}

// Finish appends what is held back, now that no id follows: beginnings of stop strings as they are, an incomplete character as
// U+FFFD.
func (d *Detokenizer) Finish(dst []byte) []byte {
	if d.stop != "" {
		return dst
	}
	dst = append(dst, d.held[d.from:]...)
	d.held, d.from = d.held[:0], 0
	return d.text.flush(dst)
}

// Stopped returns the stop string that ended the text, and whether there was one.
func (d *Detokenizer) Stopped() (stop string, ok bool) { return d.stop, d.stop != "" }

// Piece returns the text that the last id completed, whether or not it is held back for a stop string: "" in the middle of a
// character, the whole character at its end. It is valid until the next call of Append.
func (d *Detokenizer) Piece() []byte { return d.piece }

// Offset returns how many characters the pieces before the last one have.
func (d *Detokenizer) Offset() int { return d.offset }

// search looks for stop strings in the last piece, and appends what cannot be part of one.
func (d *Detokenizer) search(dst []byte) []byte {
	for i, b := range d.piece {
		d.node = d.Stops.next(d.node, b)
		if n := d.Stops.nodes[d.node].stop; n != noStop && d.fed > d.MinTokens {
			return d.end(dst, d.piece[:i+1], d.Stops.list[n])
		}
	}
	hold := int(d.Stops.nodes[d.node].hold)
	if d.IncludeStop || hold == 0 && len(d.held) == 0 {
		return append(dst, d.piece...)
	}
	d.held = append(d.held, d.piece...)
	return d.release(dst, len(d.held)-hold)
}

// release appends what is held back before index to. The rest moves down once it is the smaller part, so that each byte moves
// once on average.
func (d *Detokenizer) release(dst []byte, to int) []byte {
	dst = append(dst, d.held[d.from:to]...)
	d.from = to
	if d.from >= len(d.held)-d.from {
		d.held = d.held[:copy(d.held, d.held[d.from:])]
		d.from = 0
	}
	return dst
}

// end appends the last text of the stream: what is held back and last, which ends with stop.
func (d *Detokenizer) end(dst, last []byte, stop string) []byte {
	d.stop = stop
	if d.IncludeStop {
		return append(dst, last...)
	}
	d.held = append(d.held, last...)
	dst = append(dst, d.held[d.from:len(d.held)-len(stop)]...)
	d.held, d.from = nil, 0
	return dst
}
