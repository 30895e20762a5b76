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
	size    int                       // parts, once repeats are written out
	classes map[*syntax.Regexp][]rune // characters to write for those classes that came up
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
	p := &pattern{tree: tree, size: size(tree), classes: make(map[*syntax.Regexp][]rune)}
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

// size counts the parts of a tree, repeated ones as often as they may occur; it stops somewhere beyond the limit. A class is one part.
func size(t *syntax.Regexp) int {
	n := 1
	if t.Op == syntax.OpLiteral {
		n = len(t.Rune)
	}
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
// later ones so that the string may get the length that is wanted.
func (p *pattern) make(g *generator, try int, length span) (string, bool) {
	w := writer{g: g, pattern: p, spread: 3}
	if try >= tries/10 {
		w.reach(try, length)
	}
	ok := w.write(p.tree)
	g.take(1 + w.steps/16)
	return string(w.text), ok
}

// reach sets how much is repeated, to come to a length: by chance, by one repeat with something around it, or by a few of them.
func (w *writer) reach(try int, length span) {
	random, more := w.g.random, 16
	if length.bounded {
		more = min(more, length.most-length.least)
	}
	target := length.least + random.IntN(more+1)
	switch try % 3 {
	case 0:
		w.spread = random.IntN(target + 1)
	case 1:
		w.spread, w.full = max(0, target-random.IntN(32)), true
	default:
		w.spread, w.full = target/(1+random.IntN(4)), true
	}
}

// writer writes a string after a tree.
type writer struct {
	g       *generator
	pattern *pattern
	spread  int  // repeats beyond the least number, where they have no end
	full    bool // repeat as much as spread allows
	text    []byte
	steps   int
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
		return w.class(t)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.text = append(w.text, 'a'+byte(w.g.random.IntN(26)))
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
	if !w.full {
		most = least + w.g.random.IntN(most-least+1)
	}
	for range most {
		if !w.write(t.Sub[0]) {
			return false
		}
	}
	return true
}

// friendly are the characters that are preferred, in pairs of first and last, best ones first.
var friendly = [][]rune{{'a', 'z', '0', '9', 'A', 'Z'}, {' ', '~'}, {0, unicode.MaxRune}}

// class writes one character of a class.
func (w *writer) class(t *syntax.Regexp) bool {
	ranges, ok := w.pattern.classes[t]
	if !ok {
		ranges = best(t.Rune)
		w.pattern.classes[t] = ranges
	}
	if len(ranges) == 0 {
		return false
	}
	i := 2 * w.g.random.IntN(len(ranges)/2)
	r := ranges[i] + w.g.random.Int32N(ranges[i+1]-ranges[i]+1)
	w.text = utf8.AppendRune(w.text, r)
	return utf8.ValidRune(r)
}

// best returns the part of ranges that is preferred most; both are pairs of first and last.
func best(ranges []rune) []rune {
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
			return found
		}
	}
	return nil
}
