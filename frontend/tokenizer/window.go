package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// window is how much text is encoded at once, in bytes. The encoder's time and memory grow with a word's length, and its matcher
// keeps a limited stack.
const window = 32 << 10

// cut returns where to end the first window of text: at most limit, and where tokens part in any case, if there is such a place.
//
// The vocabulary first splits text into words, and a token never spans two of them. A word holds letters up to its end, or is
// made of numbers alone, so one ends for certain where letters or numbers do. The words behind such a place do not depend on
// those before it.
func cut(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	next, _ := utf8.DecodeRuneInString(text[end:])
	for at := end; at > 0; {
		last, size := utf8.DecodeLastRuneInString(text[:at])
		if c := classOf(last); c != other && classOf(next) != c {
			return at
		}
		at -= size
		next = last
	}
	return end
}

type class uint8

const (
	other class = iota
	letter
	number
)

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	default:
		return other
	}
}
