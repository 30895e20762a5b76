package fill

import (
	"errors"
	"fmt"
)

// maxOptional is how many members an object has by chance.
const maxOptional = 12

// members is an object while it is made.
type members struct {
	value
	needed map[string]bool // required names that it lacks
	taken  map[string]bool
	chance int // members it has by chance
}

func (m *members) add(name string, v value) {
	m.members = append(m.members, member{name: name, value: v})
	m.taken[name] = true
	delete(m.needed, name)
}

// object makes an object: the members of properties in their order, then required ones that properties lacks, then more if there
// have to be.
func (g *generator) object(w *whole, depth int) (value, error) {
	m := members{value: value{kind: object}, needed: make(map[string]bool), taken: make(map[string]bool)}
	for _, name := range w.required {
		m.needed[name] = true
	}
	if w.members.bounded && len(m.needed) > w.members.most {
		return m.value, fmt.Errorf("%d required members, want at most %d", len(m.needed), w.members.most)
	}
	for _, name := range w.names {
		if err := g.property(&m, w, name, depth); err != nil {
			return m.value, err
		}
	}
	for _, name := range w.required {
		if m.needed[name] {
			if err := g.member(&m, w, name, depth); err != nil {
				return m.value, err
			}
		}
	}
	return m.value, g.more(&m, w, depth)
}

// property adds the member of properties, if it is required or chance wants it.
func (g *generator) property(m *members, w *whole, name string, depth int) error {
	if m.needed[name] {
		return g.member(m, w, name, depth)
	}
	if !g.wants(m, w, name, depth) {
		return nil
	}
	m.chance++
	if err := g.member(m, w, name, depth); err != nil && g.spent() {
		return err
	}
	return nil // an optional member that cannot be made is left out
}

func (g *generator) wants(m *members, w *whole, name string, depth int) bool {
	if p := w.properties[name]; p != nil && p.level >= never {
		return false
	}
	if w.members.bounded && len(m.members)+len(m.needed) >= w.members.most {
		return false
	}
	if len(m.members)+len(m.needed) < w.members.least {
		return true
	}
	return depth < easy && m.chance < maxOptional && g.random.IntN(3) > 0
}

func (g *generator) member(m *members, w *whole, name string, depth int) error {
	v, err := g.make(w.property(name), depth+1)
	if err != nil {
		return err
	}
	g.grow(len(name))
	m.add(name, v)
	return nil
}

// more adds members of any name: as many as are missing, and one or two to an object that is a dictionary.
func (g *generator) more(m *members, w *whole, depth int) error {
	least := w.members.least
	if len(w.names) == 0 && w.additional != nil && w.additional.level < never && depth < easy && len(m.members) == 0 {
		least = max(least, 1+g.random.IntN(2))
	}
	if w.members.bounded {
		least = min(least, w.members.most)
	}
	for n := 1; len(m.members) < least; n++ {
		err := errors.New("no more names for members")
		if n <= 2*maxItems {
			err = g.another(m, w, n, depth)
		}
		if err != nil && (len(m.members) < w.members.least || g.spent()) {
			return err
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

// another adds a member of a new name, or none if the name it thought of is taken.
func (g *generator) another(m *members, w *whole, n, depth int) error {
	name := fmt.Sprintf("key_%d", n)
	if w.memberName != nil {
		v, err := g.make(both(w.memberName, &schema{types: text}), depth+1)
		if err != nil {
			return err
		}
		name = v.text
	}
	if _, ok := w.properties[name]; ok || m.taken[name] {
		return nil
	}
	return g.member(m, w, name, depth)
}
