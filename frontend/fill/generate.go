package fill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// easy is the level down to which documents have what is optional; below it they end as soon as their schema lets them.
const easy = 5

// generator makes one document. Its random numbers are drawn in a fixed order.
type generator struct {
	random *rand.Rand
	*budget
}

// make returns a value that s allows, depth levels below the document's top. nil allows anything.
func (g *generator) make(s *schema, depth int) (value, error) {
	if s == nil {
		return g.words(span{}), nil
	}
	if depth > maxNesting {
		return value{}, &dead{at: s.path(), err: fmt.Errorf("more than %d levels", maxNesting)}
	}
	var w whole
	if err := w.add(s, g.budget); err != nil {
		return value{}, &dead{at: s.path(), err: err}
	}
	v, err := g.choose(&w, s, depth)
	if err == nil || errors.As(err, new(*dead)) {
		return v, err
	}
	return v, &dead{at: s.path(), err: err}
}

// dead is why a schema could not be satisfied; the innermost one tells.
type dead struct {
	at  string
	err error
}

func (d *dead) Error() string { return d.at + ": " + d.err.Error() }
func (d *dead) Unwrap() error { return d.err }

// choose makes the first of w's choices, each way in turn until the value is one that all of s allows.
func (g *generator) choose(w *whole, s *schema, depth int) (value, error) {
	if len(w.choices) == 0 {
		return g.plain(w, s, depth)
	}
	last := errContradiction
	for _, branch := range g.order(w.choices[0], depth) {
		next := *w
		next.choices = slices.Clone(w.choices[1:])
		err := next.add(branch, g.budget)
		if err == nil {
			var v value
			if v, err = g.choose(&next, s, depth+1); err == nil && g.check(&v, s) {
				return v, nil
			}
		}
		if g.spent() {
			return value{}, errTooMuch
		}
		if err != nil {
			last = err
		}
	}
	return value{}, last
}

// order returns the branches that have documents: by chance, and those with the least levels first once the document is deep.
func (g *generator) order(branches []*schema, depth int) []*schema {
	var list []*schema
	for _, s := range branches {
		if s.level < never {
			list = append(list, s)
		}
	}
	if len(list) < 2 {
		return list
	}
	if depth >= easy {
		slices.SortStableFunc(list, func(a, b *schema) int { return a.level - b.level })
		return list
	}
	first := g.random.IntN(len(list))
	return slices.Concat(list[first:], list[:first])
}

// plain makes a value for w, which has no choices left, except for its type. s is all that the value has to satisfy.
func (g *generator) plain(w *whole, s *schema, depth int) (value, error) {
	if w.enum != nil {
		return g.listed(w.enum, s)
	}
	last := errContradiction
	for _, kind := range g.kinds(w.kinds(), depth) {
		v, err := g.ofKind(kind, w, depth)
		if err == nil || g.spent() {
			return v, err
		}
		last = err
	}
	return value{}, last
}

// kinds returns the types of a set in the order of trying: any but null first by chance; the simplest first once the document is
// deep.
func (g *generator) kinds(set types, depth int) []types {
	var list []types
	for _, kind := range []types{boolean, number, text, array, object} {
		if set&kind != 0 {
			list = append(list, set&kind)
		}
	}
	if depth < easy && len(list) > 1 {
		first := g.random.IntN(len(list))
		list = slices.Concat(list[first:], list[:first])
	}
	switch {
	case set&null == 0:
		return list
	case depth < easy:
		return append(list, null)
	default:
		return slices.Insert(list, 0, null)
	}
}

func (g *generator) ofKind(kind types, w *whole, depth int) (value, error) {
	switch kind {
	case null:
		return value{kind: null}, nil
	case boolean:
		return value{kind: boolean, truth: g.random.IntN(2) == 1}, nil
	case text:
		return g.text(w)
	case array:
		return g.array(w, depth)
	case object:
		return g.object(w, depth)
	default:
		return g.number(w, kind)
	}
}

// listed returns one of list that s allows.
func (g *generator) listed(list []value, s *schema) (value, error) {
	first := g.random.IntN(len(list))
	for i := range list {
		v := &list[(first+i)%len(list)]
		if g.check(v, s) {
			g.grow(len(v.append(nil)))
			return *v, nil
		}
		if g.spent() {
			return value{}, errTooMuch
		}
	}
	return value{}, errors.New("no value of enum or const satisfies the rest of the schema")
}
