package fill

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// schema is a compiled JSON schema, or the sum of several. Fields are nil or zero where it says nothing.
type schema struct {
	parent *schema // that it is a part of; nil at a reference's target
	step   string  // from there to here, or the reference

	level int  // levels of nesting that a document needs at least; never where there is none
	never bool // allows nothing

	target              *schema // of its $ref
	allOf, anyOf, oneOf []*schema

	types types
	enum  []value         // not nil: one of these; const is an enum of one
	known map[string]bool // the keys of enum

	names      []string           // of properties, in order
	properties map[string]*schema // by name
	required   []string
	additional *schema // of members that are not in properties; nil = anything
	memberName *schema // of the name of every member
	members    span

	prefix []*schema // of the first items
	rest   *schema   // of those after them; nil = anything
	items  span
	unique bool

	length   span // of a string, in characters
	patterns []*pattern
	format   string

	low, high *bound
	multiple  *big.Rat // above 0
}

// never is the level of a schema that no document satisfies.
const never = 1 << 30

// maxPath is how much of a path an error shows.
const maxPath = 200

// path says where s stands, as a pointer into the document.
func (s *schema) path() string {
	var steps []string
	size := 0
	for ; s != nil && size < maxPath; s = s.parent {
		steps = append(steps, fmt.Sprintf("%.100s", s.step))
		size += len(s.step) + 1
	}
	slices.Reverse(steps)
	return strings.Join(steps, "/")
}

// span is a number of things: at least least, and at most most where bounded.
type span struct {
	least, most int
	bounded     bool
}

func (s span) has(n int) bool { return n >= s.least && (!s.bounded || n <= s.most) }

func (s span) and(o span) span {
	s.least = max(s.least, o.least)
	switch {
	case !s.bounded:
		s.most, s.bounded = o.most, o.bounded
	case o.bounded:
		s.most = min(s.most, o.most)
	}
	return s
}

// bound is the end of a range of numbers.
type bound struct {
	at   *big.Rat
	open bool // at itself is outside
}

// tighter returns the bound that excludes more; sign is 1 for lower bounds and -1 for upper ones.
func tighter(a, b *bound, sign int) *bound {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if c := a.at.Cmp(b.at) * sign; c < 0 || c == 0 && b.open {
		return b
	}
	return a
}

// allows says whether r is on the right side of b.
func (b *bound) allows(r *big.Rat, sign int) bool {
	if b == nil {
		return true
	}
	c := r.Cmp(b.at) * sign
	return c > 0 || c == 0 && !b.open
}

// kinds returns the types a document may have: those that are named, else those that the schema talks about.
func (s *schema) kinds() types {
	switch {
	case s.types != 0:
		return s.types
	case s.properties != nil || s.required != nil || s.additional != nil || s.memberName != nil || s.members != (span{}):
		return object
	case s.prefix != nil || s.rest != nil || s.items != (span{}) || s.unique:
		return array
	case s.low != nil || s.high != nil || s.multiple != nil:
		return number
	default:
		return text
	}
}

// item returns the schema of an array's item i, nil for anything.
func (s *schema) item(i int) *schema {
	if i < len(s.prefix) {
		return s.prefix[i]
	}
	return s.rest
}

// property returns the schema of a member, nil for anything.
func (s *schema) property(name string) *schema {
	if p, ok := s.properties[name]; ok {
		return p
	}
	return s.additional
}

// levels returns the levels a document needs, as far as those of the schema's parts are known.
func (s *schema) levels() int {
	if s.never {
		return never
	}
	n := s.ownLevels()
	if s.target != nil {
		n = max(n, s.target.level)
	}
	for _, part := range s.allOf {
		n = max(n, part.level)
	}
	for _, choices := range [][]*schema{s.anyOf, s.oneOf} {
		if choices != nil {
			n = max(n, 1+lowest(choices))
		}
	}
	return min(n, never)
}

func lowest(list []*schema) int {
	n := never
	for _, s := range list {
		n = min(n, s.level)
	}
	return n
}

// ownLevels returns what the schema needs without its $ref and its choices.
func (s *schema) ownLevels() int {
	kinds := s.kinds()
	if s.enum != nil || kinds&^(array|object) != 0 {
		return 0
	}
	n := never
	if kinds&array != 0 {
		n = min(n, s.arrayLevels())
	}
	if kinds&object != 0 {
		n = min(n, s.objectLevels())
	}
	return n
}

func (s *schema) arrayLevels() int {
	n := 0
	for i := range min(s.items.least, len(s.prefix)+1) {
		if item := s.item(i); item != nil {
			n = max(n, 1+item.level)
		}
	}
	return n
}

func (s *schema) objectLevels() int {
	n := 0
	for _, name := range s.required {
		if p := s.property(name); p != nil {
			n = max(n, 1+p.level)
		}
	}
	return n
}
