package fill

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// tries is how many strings are made of a pattern until one matches and has the length wanted.
const tries = 200

// pattern is a regular expression that strings can be made of.
type pattern struct {
	tree    *syntax.Regexp
	matcher *regexp.Regexp
	size    int // parts, once repeats are written out
}

// newPattern reads a regular expression of JavaScript, as far as Go's have the same: no look-around and no references to groups. whole
// says that it describes whole strings, and not a part of them.
func newPattern(source string, whole bool) (*pattern, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("regular expression of %d bytes, want at most %d", len(source), maxPattern)
	}
	expr := unicodeEscape.ReplaceAllString(source, `${1}\x{$2}`)
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", source, err)
	}
	p := &pattern{tree: tree, size: size(tree)}
	if p.size > maxPatternSize {
		return nil, fmt.Errorf("%.200q: repeats %d parts, want at most %d", source, p.size, maxPatternSize)
	}
	if whole {
		expr = `\A(?:` + expr + `)\z`
	}
	if p.matcher, err = regexp.Compile(expr); err != nil {
		return nil, fmt.Errorf("%.200q: %w", source, err)
	}
	return p, nil
}

// unicodeEscape is JavaScript's way to write a character by number, behind an even number of backslashes.
var unicodeEscape = regexp.MustCompile(`((?:^|[^\\])(?:\\\\)*)\\u([0-9A-Fa-f]{4})`)

// size counts the parts of a tree, repeats as often as they occur at least and at most; it stops counting somewhere beyond the limit.
func size(t *syntax.Regexp) int {
	n := 1 + len(t.Rune)
	for _, sub := range t.Sub {
		if n += size(sub); n > maxPatternSize {
			return n
		}
	}
	if t.Op == syntax.OpRepeat {
		n *= max(t.Min, t.Max, 1)
	}
	return n
}

func (p *pattern) matches(s string) bool { return p.matcher.MatchString(s) }

// make makes a string after the pattern, which need not match it where the pattern has conditions. The first tries repeat little,
// later ones up to the length that is wanted.
func (p *pattern) make(g *generator, try int, length span) (string, bool) {
	w := writer{g: g, spread: 3}
	if try >= tries/10 {
		w.spread = 1 + g.random.IntN(2+max(length.least, min(length.most, maxText)))
	}
	ok := w.write(p.tree)
	g.take(1 + w.steps/16)
	return string(w.text), ok
}

// writer writes a string after a tree.
type writer struct {
	g      *generator
	spread int // repeats beyond the least number, where they have no end
	text   []byte
	steps  int
}

// write says whether it could write t in bounded time and space.
func (w *writer) write(t *syntax.Regexp) bool {
	if w.steps++; w.steps > 4*maxText || len(w.text) > maxText {
		return false
	}
	switch t.Op {
	case syntax.OpLiteral:
		w.text = append(w.text, string(t.Rune)...)
	case syntax.OpCharClass:
		return w.class(t.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return w.class([]rune{'a', 'z'})
	case syntax.OpAlternate:
		return w.write(t.Sub[w.g.random.IntN(len(t.Sub))])
	case syntax.OpConcat, syntax.OpCapture:
		return w.all(t.Sub)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return w.repeat(t)
	case syntax.OpNoMatch:
		return false
	}
	return true // what is left matches nothing but a place
}

func (w *writer) all(list []*syntax.Regexp) bool {
	for _, t := range list {
		if !w.write(t) {
			return false
		}
	}
	return true
}

func (w *writer) repeat(t *syntax.Regexp) bool {
	least, most := t.Min, t.Max
	switch t.Op {
	case syntax.OpStar:
		least, most = 0, -1
	case syntax.OpPlus:
		least, most = 1, -1
	case syntax.OpQuest:
		least, most = 0, 1
	}
	if most < 0 || most > least+w.spread {
		most = least + w.spread
	}
	for range least + w.g.random.IntN(most-least+1) {
		if !w.write(t.Sub[0]) {
			return false
		}
	}
	return true
}

// friendly are the characters that are preferred, in pairs of first and last, best ones first.
var friendly = [][]rune{{'a', 'z', '0', '9', 'A', 'Z'}, {' ', '~'}, {0, unicode.MaxRune}}

// class writes one character of a class, which is pairs of first and last.
func (w *writer) class(ranges []rune) bool {
	for _, preferred := range friendly {
		var found []rune
		for i := 0; i < len(ranges); i += 2 {
			for j := 0; j < len(preferred); j += 2 {
				first, last := max(ranges[i], preferred[j]), min(ranges[i+1], preferred[j+1])
				if first <= last {
					found = append(found, first, last)
				}
			}
		}
		if len(found) > 0 {
			i := 2 * w.g.random.IntN(len(found)/2)
			r := found[i] + w.g.random.Int32N(found[i+1]-found[i]+1)
			w.text = utf8.AppendRune(w.text, r)
			return utf8.ValidRune(r)
		}
	}
	return false
}
