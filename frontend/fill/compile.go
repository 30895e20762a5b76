package fill

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// compile reads a schema, judges all of it that counts, and follows its references.
func compile(b []byte) (*schema, error) {
	root, err := parse(b)
	if err != nil {
		return nil, err
	}
	c := compiler{root: &root, keywords: keywords(), targets: make(map[string]*schema)}
	s, err := c.reference("#")
	if err != nil {
		return nil, err
	}
	for len(c.open) > 0 {
		next := c.open[0]
		c.open = c.open[1:]
		if err := c.fill(next.schema, next.value); err != nil {
			return nil, err
		}
	}
	c.setLevels()
	return s, nil
}

// compiler turns values into schemas. References are compiled one after the other, each target once, so that they may form circles
// and chains of any length.
type compiler struct {
	root     *value
	keywords map[string]keyword
	targets  map[string]*schema // by what refers to them
	open     []unfilled
	all      []*schema
	size     int // of all patterns
}

// unfilled is a schema that something refers to, and what it is made from.
type unfilled struct {
	schema *schema
	value  *value
}

// reference returns the schema that a reference such as "#/$defs/name" leads to. It is filled later.
func (c *compiler) reference(ref string) (*schema, error) {
	if s, ok := c.targets[ref]; ok {
		return s, nil
	}
	v, err := c.resolve(ref)
	if err != nil {
		return nil, err
	}
	s, err := c.new(nil, ref)
	if err != nil {
		return nil, err
	}
	c.targets[ref] = s
	c.open = append(c.open, unfilled{schema: s, value: v})
	return s, nil
}

func (c *compiler) new(parent *schema, step string) (*schema, error) {
	s := &schema{parent: parent, step: step, level: never}
	if len(c.all) >= maxValues {
		return nil, fmt.Errorf("%s: references make more than %d schemas", s.path(), maxValues)
	}
	c.all = append(c.all, s)
	return s, nil
}

// resolve finds the value that a reference within the document leads to.
func (c *compiler) resolve(ref string) (*value, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("$ref %.60q, want a pointer into the schema such as \"#/$defs/name\"", ref)
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, fmt.Errorf("$ref %.60q: %w", ref, err)
	}
	v := c.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if v = v.child(step); v == nil {
			return nil, fmt.Errorf("$ref %.60q leads to nothing", ref)
		}
	}
	return v, nil
}

// child returns a member, or an item by its number, or nil.
func (v *value) child(step string) *value {
	if v.kind == object {
		return v.find(step)
	}
	if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v.items) {
		return &v.items[i]
	}
	return nil
}

// sub compiles the schema v, a part of parent.
func (c *compiler) sub(parent *schema, step string, v *value) (*schema, error) {
	s, err := c.new(parent, step)
	if err != nil {
		return nil, err
	}
	return s, c.fill(s, v)
}

// fill makes s from v.
func (c *compiler) fill(s *schema, v *value) error {
	switch v.kind {
	case boolean:
		s.never = !v.truth
		return nil
	case object:
	default:
		return &misfit{at: s.path(), err: fmt.Errorf("%s, want a schema: an object or a boolean", v.short())}
	}
	for i := range v.members {
		m := &v.members[i]
		k, ok := c.keywords[m.name]
		if !ok {
			continue
		}
		if err := k(c, s, &m.value); err != nil {
			return s.blame(m.name, err)
		}
	}
	return nil
}

// misfit is a fault of a schema, with the place it was found at.
type misfit struct {
	at  string
	err error
}

func (m *misfit) Error() string { return m.at + ": " + m.err.Error() }
func (m *misfit) Unwrap() error { return m.err }

// blame says where err is from, unless it knows already: a fault is of the innermost schema.
func (s *schema) blame(keyword string, err error) error {
	if m := (*misfit)(nil); errors.As(err, &m) {
		return err
	}
	return &misfit{at: s.path() + ": " + keyword, err: err}
}

// setLevels finds the levels of all schemas: it starts from none having a document, and goes on while one turns out to have a
// smaller one.
func (c *compiler) setLevels() {
	for pass, changed := 0, true; changed && pass <= 2*maxLevels; pass++ {
		changed = false
		for i := len(c.all) - 1; i >= 0; i-- { // parts come after their wholes
			s := c.all[i]
			if n := s.levels(); n < s.level {
				s.level, changed = n, true
			}
		}
	}
}
