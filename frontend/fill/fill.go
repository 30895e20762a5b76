// Package fill makes content of a wanted form out of nothing but a seed: JSON documents that a schema allows, arguments of tool calls,
// text that a regular expression matches, one of several choices. It stands in for what a model would have decided.
//
// It guarantees:
//   - the same input and seed give the same content, in this process and in any other;
//   - content is small, and has been checked against the whole of what was asked for;
//   - what it does not know is an error that names the place and the keyword, never content that is only nearly right;
//   - whatever a schema says, it costs bounded time and memory: see the limits beside the errors.
//
// It must never know about HTTP, tokens or engines. Every error is the fault of the input.
package fill

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// The limits. Those of a schema hold before anything is made of it.
const (
	maxSchemaBytes = 1 << 20 // length of a schema
	maxValues      = 1 << 16 // JSON values in a schema, and parts that its references make
	maxNesting     = 128     // levels of a schema
	maxLevels      = 64      // levels that a document needs at least
	maxItems       = 1024    // minItems and minProperties
	maxText        = 8192    // minLength, and characters of any string
	maxDocument    = 1 << 18 // bytes of a document
	maxSteps       = 100_000 // of making and checking a document, those given up included
	maxPattern     = 4096    // bytes of a regular expression
	maxPatternSize = 10_000  // parts of it, once repeats are written out
	maxDigits      = 400     // of a number, written out
)

// attempts is how often a document is begun anew, with other choices, before its schema counts as too hard.
const attempts = 8

var errTooMuch = errors.New("it takes too much work to find a document, or a document would be too large")

// JSON returns a document that schema allows, as one line of text. schema is JSON Schema as OpenAI's structured outputs have it, and
// somewhat more:
//
//	any type      type, enum, const, anyOf, oneOf, allOf, $ref to "#…"
//	objects       properties, required, additionalProperties, propertyNames, minProperties, maxProperties
//	arrays        items, prefixItems, minItems, maxItems, uniqueItems
//	strings       minLength, maxLength, pattern, format
//	numbers       minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
//
// Other keywords that allow or forbid something are errors; title, description, default and their like have no effect. Properties
// come in the order of the schema. An unknown format is any string.
func JSON(schema []byte, seed uint64) ([]byte, error) {
	s, err := compile(schema)
	if err != nil {
		return nil, err
	}
	v, err := find(s, seed)
	if err != nil {
		return nil, err
	}
	return v.append(nil), nil
}

// find makes a value that s allows.
func find(s *schema, seed uint64) (value, error) {
	if s.level > maxLevels {
		return value{}, fmt.Errorf("%s: no document within %d levels satisfies the schema", s.path(), maxLevels)
	}
	var last error
	work := &budget{pending: make(map[question]bool)}
	for attempt := range uint64(attempts) {
		g := generator{random: rand.New(rand.NewPCG(seed, attempt)), budget: work}
		v, err := g.make(s, 0)
		if err == nil && work.check(&v, s) {
			return v, nil
		}
		if work.spent() {
			return value{}, fmt.Errorf("%s: %w", s.path(), errTooMuch)
		}
		if last = err; err == nil {
			last = fmt.Errorf("%s: no document found that satisfies the schema", s.path())
		}
	}
	return value{}, last
}

// anything is the schema of an answer that may be any object.
const anything = `{"type":"object","properties":{
	"title":{"type":"string"},
	"items":{"type":"array","minItems":1,"items":{"type":"string"}},
	"count":{"type":"integer","minimum":0},
	"complete":{"type":"boolean"}
},"required":["title","items","count","complete"]}`

// Object returns a small JSON object, for answers that may be any.
func Object(seed uint64) []byte {
	b, err := JSON([]byte(anything), seed)
	if err != nil {
		panic(fmt.Sprintf("fill: own schema: %v", err))
	}
	return b
}

// Regex returns a string that pattern matches as a whole. pattern is a regular expression as JSON Schema has it, without look-around and
// references to groups.
func Regex(pattern string, seed uint64) (string, error) {
	p, err := newPattern(pattern, true)
	if err != nil {
		return "", fmt.Errorf("regex: %w", err)
	}
	s := &schema{step: "regex", types: text}
	s.patterns = append(s.patterns, p)
	v, err := find(s, seed)
	return v.text, err
}

// Choice returns one of choices.
func Choice(choices []string, seed uint64) (string, error) {
	if len(choices) == 0 {
		return "", errors.New("choice: none, want at least one")
	}
	return choices[rand.New(rand.NewPCG(seed, 0)).IntN(len(choices))], nil
}
