package fill

import (
	"errors"
	"fmt"
	"math/big"
)

// keyword puts what a schema's member says into s.
type keyword func(c *compiler, s *schema, v *value) error

// keywords returns those that mean something. All others are notes for the reader.
func keywords() map[string]keyword {
	return map[string]keyword{
		"$ref":  (*compiler).ref,
		"allOf": schemas("allOf", func(s *schema) *[]*schema { return &s.allOf }),
		"anyOf": schemas("anyOf", func(s *schema) *[]*schema { return &s.anyOf }),
		"oneOf": schemas("oneOf", func(s *schema) *[]*schema { return &s.oneOf }),
		"type":  (*compiler).typeOf,
		"enum":  (*compiler).enum,
		"const": func(_ *compiler, s *schema, v *value) error { return s.oneOfValues([]value{*v}) },

		"properties":           (*compiler).properties,
		"required":             (*compiler).required,
		"additionalProperties": one("additionalProperties", func(s *schema) **schema { return &s.additional }),
		"propertyNames":        one("propertyNames", func(s *schema) **schema { return &s.memberName }),
		"minProperties":        least(func(s *schema) *span { return &s.members }, maxItems),
		"maxProperties":        most(func(s *schema) *span { return &s.members }),

		"items":           (*compiler).items,
		"prefixItems":     schemas("prefixItems", func(s *schema) *[]*schema { return &s.prefix }),
		"additionalItems": (*compiler).additionalItems,
		"minItems":        least(func(s *schema) *span { return &s.items }, maxItems),
		"maxItems":        most(func(s *schema) *span { return &s.items }),
		"uniqueItems":     (*compiler).unique,

		"minLength": least(func(s *schema) *span { return &s.length }, maxText),
		"maxLength": most(func(s *schema) *span { return &s.length }),
		"pattern":   (*compiler).pattern,
		"format":    (*compiler).format,

		"minimum":          limit(func(s *schema, b *bound) { s.low = tighter(s.low, b, 1) }, false),
		"exclusiveMinimum": limit(func(s *schema, b *bound) { s.low = tighter(s.low, b, 1) }, true),
		"maximum":          limit(func(s *schema, b *bound) { s.high = tighter(s.high, b, -1) }, false),
		"exclusiveMaximum": limit(func(s *schema, b *bound) { s.high = tighter(s.high, b, -1) }, true),
		"multipleOf":       (*compiler).multipleOf,

		"not": unsupported, "if": unsupported, "patternProperties": unsupported, "dependencies": unsupported,
		"dependentRequired": unsupported, "dependentSchemas": unsupported, "contains": unsupported,
		"unevaluatedProperties": unsupported, "unevaluatedItems": unsupported, "$dynamicRef": unsupported, "$recursiveRef": unsupported,
	}
}

func unsupported(*compiler, *schema, *value) error { return errors.New("not supported") }

// typeNames are the types as a schema names them.
var typeNames = map[string]types{
	"null": null, "boolean": boolean, "integer": integer, "number": number, "string": text, "array": array, "object": object,
}

func (c *compiler) ref(s *schema, v *value) error {
	if v.kind != text {
		return fmt.Errorf("%s, want a string", v.short())
	}
	target, err := c.reference(v.text)
	s.target = target
	return err
}

func (c *compiler) typeOf(s *schema, v *value) error {
	list := v.items
	if v.kind != array {
		list = []value{*v}
	}
	for i := range list {
		t, ok := typeNames[list[i].text]
		if !ok || list[i].kind != text {
			return fmt.Errorf("%s, want null, boolean, integer, number, string, array, object or a list of them", list[i].short())
		}
		s.types |= t
	}
	if s.types == 0 {
		return errors.New("an empty list, want at least one type")
	}
	return nil
}

func (c *compiler) enum(s *schema, v *value) error {
	if v.kind != array || len(v.items) == 0 {
		return fmt.Errorf("%s, want an array of at least one value", v.short())
	}
	return s.oneOfValues(v.items)
}

// oneOfValues narrows s to the values of list. Two such lists have in common what is in both.
func (s *schema) oneOfValues(list []value) error {
	known := make(map[string]bool, len(list))
	for i := range list {
		if key := list[i].key(); s.enum == nil || s.known[key] {
			known[key] = true
		}
	}
	s.enum, s.known = list, known
	return nil
}

func (c *compiler) properties(s *schema, v *value) error {
	if v.kind != object {
		return fmt.Errorf("%s, want an object", v.short())
	}
	s.properties = make(map[string]*schema, len(v.members))
	s.names = s.names[:0]
	for i := range v.members {
		name := v.members[i].name
		p, err := c.sub(s, "properties/"+name, &v.members[i].value)
		if err != nil {
			return err
		}
		if s.properties[name] == nil {
			s.names = append(s.names, name)
		}
		s.properties[name] = p
	}
	return nil
}

func (c *compiler) required(s *schema, v *value) error {
	if v.kind != array {
		return fmt.Errorf("%s, want an array of strings", v.short())
	}
	s.required = make([]string, 0, len(v.items))
	for i := range v.items {
		if v.items[i].kind != text {
			return fmt.Errorf("%s, want strings", v.items[i].short())
		}
		s.required = append(s.required, v.items[i].text)
	}
	return nil
}

// items takes a schema for all items or, as older drafts have it, a list for the first ones.
func (c *compiler) items(s *schema, v *value) error {
	if v.kind == array {
		return schemas("items", func(s *schema) *[]*schema { return &s.prefix })(c, s, v)
	}
	return one("items", func(s *schema) **schema { return &s.rest })(c, s, v)
}

// additionalItems is the schema of the items behind such a list.
func (c *compiler) additionalItems(s *schema, v *value) error {
	if s.rest != nil {
		return nil
	}
	return one("additionalItems", func(s *schema) **schema { return &s.rest })(c, s, v)
}

func (c *compiler) unique(s *schema, v *value) error {
	if v.kind != boolean {
		return fmt.Errorf("%s, want a boolean", v.short())
	}
	s.unique = v.truth
	return nil
}

func (c *compiler) pattern(s *schema, v *value) error {
	if v.kind != text {
		return fmt.Errorf("%s, want a string", v.short())
	}
	p, err := newPattern(v.text, false)
	if err != nil {
		return err
	}
	if c.size += p.size; c.size > 10*maxPatternSize {
		return fmt.Errorf("all patterns together repeat too much, want at most %d parts", 10*maxPatternSize)
	}
	s.patterns = []*pattern{p}
	return nil
}

func (c *compiler) format(s *schema, v *value) error {
	if v.kind != text {
		return fmt.Errorf("%s, want a string", v.short())
	}
	s.format = v.text
	return nil
}

func (c *compiler) multipleOf(s *schema, v *value) error {
	r, err := v.rat()
	if err != nil {
		return err
	}
	if r.Sign() <= 0 {
		return fmt.Errorf("%s, want a number above 0", v.short())
	}
	s.multiple = r
	return nil
}

// one is a keyword with one schema.
func one(name string, field func(*schema) **schema) keyword {
	return func(c *compiler, s *schema, v *value) error {
		sub, err := c.sub(s, name, v)
		*field(s) = sub
		return err
	}
}

// schemas is a keyword with a list of schemas.
func schemas(name string, field func(*schema) *[]*schema) keyword {
	return func(c *compiler, s *schema, v *value) error {
		if v.kind != array || len(v.items) == 0 {
			return fmt.Errorf("%s, want an array of at least one schema", v.short())
		}
		list := make([]*schema, 0, len(v.items))
		for i := range v.items {
			sub, err := c.sub(s, fmt.Sprintf("%s/%d", name, i), &v.items[i])
			if err != nil {
				return err
			}
			list = append(list, sub)
		}
		*field(s) = list
		return nil
	}
}

// least is a keyword with the smallest number of things, at most limit.
func least(field func(*schema) *span, limit int) keyword {
	return func(_ *compiler, s *schema, v *value) error {
		n, err := v.count()
		if err != nil {
			return err
		}
		if n.Cmp(big.NewInt(int64(limit))) > 0 {
			return fmt.Errorf("%s, want at most %d", v.short(), limit)
		}
		field(s).least = int(n.Int64())
		return nil
	}
}

// most is a keyword with the largest number of things.
func most(field func(*schema) *span) keyword {
	return func(_ *compiler, s *schema, v *value) error {
		n, err := v.count()
		if err != nil {
			return err
		}
		if n.IsInt64() { // else it is no limit
			f := field(s)
			f.most, f.bounded = int(n.Int64()), true
		}
		return nil
	}
}

// count is the value of a number that counts.
func (v *value) count() (*big.Int, error) {
	r, err := v.rat()
	if err != nil {
		return nil, err
	}
	if !r.IsInt() || r.Sign() < 0 {
		return nil, fmt.Errorf("%s, want an integer of at least 0", v.short())
	}
	return r.Num(), nil
}

// limit is a keyword with the end of a range of numbers.
func limit(put func(*schema, *bound), open bool) keyword {
	return func(_ *compiler, s *schema, v *value) error {
		r, err := v.rat()
		if err != nil {
			return err
		}
		put(s, &bound{at: r, open: open})
		return nil
	}
}
