package fill

import "errors"

// draws is how often an item that has to differ from the others is drawn.
const draws = 32

// array makes an array: at least as long as it must be, and a little longer while the document is not deep.
func (g *generator) array(w *whole, depth int) (value, error) {
	v := value{kind: array}
	n := w.items.least
	if depth < easy {
		n = max(n+g.random.IntN(3), len(w.prefix), 1)
	}
	if w.items.bounded {
		n = min(n, w.items.most)
	}
	if n < w.items.least {
		return v, errContradiction
	}
	seen := make(map[string]bool)
	for i := range n {
		item, err := g.item(w, i, seen, depth)
		if err != nil && (i < w.items.least || g.spent()) {
			return v, err
		}
		if err != nil {
			break
		}
		v.items = append(v.items, item)
	}
	return v, nil
}

// item makes item i; seen holds the keys of those before it, where they have to differ.
func (g *generator) item(w *whole, i int, seen map[string]bool, depth int) (value, error) {
	if !w.unique {
		return g.make(w.item(i), depth+1)
	}
	for range draws {
		v, err := g.make(w.item(i), depth+1)
		if err != nil {
			return v, err
		}
		if key := v.key(); !seen[key] {
			seen[key] = true
			return v, nil
		}
	}
	return value{}, errors.New("not enough different items found")
}
