package fill

import (
	"math/big"
	"unicode/utf8"
)

// budget is the work that one document may take.
type budget struct {
	steps   int
	bytes   int
	pending map[question]bool // being checked
}

// question is whether a schema allows a value.
type question struct {
	*value
	*schema
}

// step accounts for one step, and says whether it may be made.
func (b *budget) step() bool { return b.take(1) }

func (b *budget) take(steps int) bool {
	b.steps += steps
	return !b.spent()
}

// grow accounts for n bytes of content.
func (b *budget) grow(n int) { b.bytes += n }

func (b *budget) spent() bool { return b.steps > maxSteps || b.bytes > maxDocument }

// check says whether s allows v. nil allows anything. Once the budget is spent it says no.
func (b *budget) check(v *value, s *schema) bool {
	if s == nil {
		return true
	}
	if !b.step() || s.never || !s.allowsType(v) || s.enum != nil && !s.known[v.key()] {
		return false
	}
	return b.checkContent(v, s) && b.checkParts(v, s)
}

// checkParts asks what s refers to. A question that leads to itself adds nothing: its answer is no.
func (b *budget) checkParts(v *value, s *schema) bool {
	if s.target == nil && s.allOf == nil && s.anyOf == nil && s.oneOf == nil {
		return true
	}
	q := question{v, s}
	if b.pending[q] {
		return false
	}
	b.pending[q] = true
	defer delete(b.pending, q)
	if s.target != nil && !b.check(v, s.target) {
		return false
	}
	for _, part := range s.allOf {
		if !b.check(v, part) {
			return false
		}
	}
	return (s.anyOf == nil || b.count(v, s.anyOf, 1) > 0) && (s.oneOf == nil || b.count(v, s.oneOf, 2) == 1)
}

// count returns how many schemas of list allow v; it stops at enough.
func (b *budget) count(v *value, list []*schema, enough int) int {
	n := 0
	for _, s := range list {
		if b.check(v, s) {
			n++
		}
		if n == enough {
			break
		}
	}
	return n
}

func (b *budget) checkContent(v *value, s *schema) bool {
	switch {
	case v.kind == object:
		return b.checkObject(v, s)
	case v.kind == array:
		return b.checkArray(v, s)
	case v.kind == text:
		return b.allowsText(v.text, s)
	case v.kind&number != 0:
		return s.allowsNumber(v)
	default:
		return true
	}
}

func (b *budget) checkObject(v *value, s *schema) bool {
	if !s.members.has(len(v.members)) {
		return false
	}
	names := make(map[string]bool, len(v.members))
	for i := range v.members {
		m := &v.members[i]
		names[m.name] = true
		if !b.check(&m.value, s.property(m.name)) || !b.check(&value{kind: text, text: m.name}, s.memberName) {
			return false
		}
	}
	for _, name := range s.required {
		if !names[name] {
			return false
		}
	}
	return true
}

func (b *budget) checkArray(v *value, s *schema) bool {
	if !s.items.has(len(v.items)) {
		return false
	}
	keys := make(map[string]bool)
	for i := range v.items {
		if !b.check(&v.items[i], s.item(i)) {
			return false
		}
		if s.unique {
			keys[v.items[i].key()] = true
		}
	}
	return !s.unique || len(keys) == len(v.items)
}

func (s *schema) allowsType(v *value) bool {
	if s.types == 0 {
		return true
	}
	if v.kind&number == 0 {
		return v.kind&s.types != 0
	}
	r, err := v.rat()
	if err == nil && r.IsInt() {
		return s.types&integer != 0
	}
	return s.types&fraction != 0
}

// allowsText accounts for the patterns: matching takes time for every part of a pattern at every character.
func (b *budget) allowsText(t string, s *schema) bool {
	if !s.length.has(utf8.RuneCountInString(t)) {
		return false
	}
	for _, p := range s.patterns {
		if !b.take(len(t)*p.size/100) || !p.matches(t) {
			return false
		}
	}
	return true
}

func (s *schema) allowsNumber(v *value) bool {
	if s.low == nil && s.high == nil && s.multiple == nil {
		return true
	}
	r, err := v.rat()
	if err != nil || !s.low.allows(r, 1) || !s.high.allows(r, -1) {
		return false
	}
	return s.multiple == nil || new(big.Rat).Quo(r, s.multiple).IsInt()
}
