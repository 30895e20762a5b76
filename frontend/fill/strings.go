package fill

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// vocabulary is what text is made of.
var vocabulary = strings.Fields("amber anchor basin birch candle canvas cedar coral delta ember falcon fern garden granite " +
	"harbor hazel island ivory juniper kettle lantern lemon maple meadow nectar oak orchard pebble quartz raven river " +
	"saffron silver spruce summit thistle timber valley velvet willow winter")

// text makes a string. A pattern counts before a format, and a format before plain words.
func (g *generator) text(w *whole) (value, error) {
	if w.length.bounded && w.length.most < w.length.least {
		return value{}, errContradiction
	}
	if len(w.patterns) > 0 {
		return g.patterned(w)
	}
	if f, ok := formats[w.format]; ok {
		return g.formatted(w, f)
	}
	return g.words(w.length), nil
}

func (g *generator) patterned(w *whole) (value, error) {
	for try := range tries {
		s, ok := w.patterns[0].make(g, try, w.length)
		if try >= tries/2 {
			s = pad(s, w.length.least, try)
		}
		if ok && g.allowsText(s, &w.schema) {
			g.grow(len(s))
			return value{kind: text, text: s}, nil
		}
		if g.spent() {
			return value{}, errTooMuch
		}
	}
	return value{}, errors.New("no string found that matches all patterns and lengths")
}

// pad lengthens s to n characters, in front or behind, for patterns that leave open what is there.
func pad(s string, n, try int) string {
	missing := n - utf8.RuneCountInString(s)
	switch {
	case missing <= 0:
		return s
	case try%2 == 0:
		return s + strings.Repeat("x", missing)
	default:
		return strings.Repeat("x", missing) + s
	}
}

func (g *generator) formatted(w *whole, f format) (value, error) {
	for range draws {
		if s := f(g.random); w.length.has(len(s)) {
			g.grow(len(s))
			return value{kind: text, text: s}, nil
		}
	}
	return value{}, fmt.Errorf("no string found of format %q and the lengths wanted", w.format)
}

// words makes a few words, cut or repeated to the length.
func (g *generator) words(length span) value {
	n := 1 + g.random.IntN(3)
	var b strings.Builder
	for i := 0; i < n || b.Len() < length.least; i++ {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(vocabulary[g.random.IntN(len(vocabulary))])
	}
	s := b.String()
	if length.bounded && len(s) > length.most {
		s = s[:length.most]
		if trimmed := strings.TrimRight(s, " "); len(trimmed) >= length.least {
			s = trimmed
		}
	}
	g.grow(len(s))
	return value{kind: text, text: s}
}
