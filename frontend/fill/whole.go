package fill

import (
	"errors"
	"math/big"
	"slices"
)

// whole is the sum of a schema and what it refers to, with the choices that are still to be made.
type whole struct {
	schema
	choices [][]*schema // of each list one schema is to be added
}

var errContradiction = errors.New("the schema contradicts itself")

// both returns a schema that allows what a and b allow. nil allows anything.
func both(a, b *schema) *schema {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	s := &schema{parent: a.parent, step: a.step, allOf: []*schema{a, b}}
	s.level = max(a.level, b.level)
	return s
}

// add adds s, with all that it refers to. Chains of references end: a schema in a circle of them has no document, and is not
// added.
func (w *whole) add(s *schema, b *budget) error {
	if !b.step() {
		return errTooMuch
	}
	if s.never || s.level >= never {
		return errContradiction
	}
	if err := w.merge(s); err != nil {
		return err
	}
	if s.target != nil {
		if err := w.add(s.target, b); err != nil {
			return err
		}
	}
	for _, part := range s.allOf {
		if err := w.add(part, b); err != nil {
			return err
		}
	}
	for _, choices := range [][]*schema{s.anyOf, s.oneOf} {
		if choices != nil {
			w.choices = append(slices.Clip(w.choices), choices)
		}
	}
	return nil
}

// merge adds what s itself says. It changes no map or slice that a schema has.
func (w *whole) merge(s *schema) error {
	if s.types != 0 {
		if w.types == 0 {
			w.types = s.types
		}
		if w.types &= s.types; w.types == 0 {
			return errContradiction
		}
	}
	if w.enum == nil {
		w.enum = s.enum
	}
	w.mergeObject(s)
	w.mergeArray(s)
	w.length = w.length.and(s.length)
	w.patterns = append(slices.Clip(w.patterns), s.patterns...)
	if w.format == "" {
		w.format = s.format
	}
	return w.mergeNumber(s)
}

func (w *whole) mergeObject(s *schema) {
	w.members = w.members.and(s.members)
	w.required = append(slices.Clip(w.required), s.required...)
	w.memberName = both(w.memberName, s.memberName)
	if s.properties == nil && s.additional == nil {
		return
	}
	if w.properties == nil && w.additional == nil {
		w.names, w.properties, w.additional = s.names, s.properties, s.additional
		return
	}
	properties := make(map[string]*schema, len(w.properties)+len(s.properties))
	names := slices.Clone(w.names)
	for _, name := range w.names {
		properties[name] = both(w.properties[name], s.property(name))
	}
	for _, name := range s.names {
		if properties[name] == nil {
			names = append(names, name)
			properties[name] = both(w.additional, s.properties[name])
		}
	}
	w.names, w.properties, w.additional = names, properties, both(w.additional, s.additional)
}

func (w *whole) mergeArray(s *schema) {
	w.items = w.items.and(s.items)
	w.unique = w.unique || s.unique
	if s.prefix == nil && s.rest == nil {
		return
	}
	if w.prefix == nil && w.rest == nil {
		w.prefix, w.rest = s.prefix, s.rest
		return
	}
	prefix := make([]*schema, max(len(w.prefix), len(s.prefix)))
	for i := range prefix {
		prefix[i] = both(w.item(i), s.item(i))
	}
	w.prefix, w.rest = prefix, both(w.rest, s.rest)
}

func (w *whole) mergeNumber(s *schema) error {
	w.low = tighter(w.low, s.low, 1)
	w.high = tighter(w.high, s.high, -1)
	if w.multiple == nil || s.multiple == nil {
		if w.multiple == nil {
			w.multiple = s.multiple
		}
		return nil
	}
	w.multiple = leastCommonMultiple(w.multiple, s.multiple)
	if w.multiple.Num().BitLen() > 4*maxDigits {
		return errTooMuch
	}
	return nil
}

// leastCommonMultiple of two fractions in lowest terms is that of their numerators over what their denominators share.
func leastCommonMultiple(a, b *big.Rat) *big.Rat {
	shared := new(big.Int).GCD(nil, nil, a.Num(), b.Num())
	n := new(big.Int).Mul(a.Num(), b.Num())
	return new(big.Rat).SetFrac(n.Quo(n, shared), new(big.Int).GCD(nil, nil, a.Denom(), b.Denom()))
}
