package fill

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

// parse reads one JSON document. Decoders into Go's maps lose the order of members, which is the order of what is filled in.
func parse(b []byte) (value, error) {
	if len(b) > maxSchemaBytes {
		return value{}, fmt.Errorf("schema of %d bytes, want at most %d", len(b), maxSchemaBytes)
	}
	p := parser{all: b, left: b}
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	if p.skipSpace(); len(p.left) > 0 {
		return value{}, p.unexpected("the end")
	}
	return v, nil
}

type parser struct {
	all, left []byte
	values    int
}

func (p *parser) skipSpace() { p.left = bytes.TrimLeft(p.left, " \t\r\n") }

func (p *parser) unexpected(want string) error {
	at := len(p.all) - len(p.left)
	if len(p.left) == 0 {
		return fmt.Errorf("schema: ends at byte %d, want %s", at, want)
	}
	return fmt.Errorf("schema: %q at byte %d, want %s", p.left[:1], at, want)
}

// take takes word if it comes next.
func (p *parser) take(word string) bool {
	p.skipSpace()
	if !bytes.HasPrefix(p.left, []byte(word)) {
		return false
	}
	p.left = p.left[len(word):]
	return true
}

func (p *parser) value(depth int) (value, error) {
	if p.values++; p.values > maxValues {
		return value{}, fmt.Errorf("schema: more than %d values", maxValues)
	}
	if depth > maxNesting {
		return value{}, fmt.Errorf("schema: more than %d levels", maxNesting)
	}
	switch {
	case p.take("{"):
		return p.object(depth)
	case p.take("["):
		return p.array(depth)
	case p.take("null"):
		return value{kind: null}, nil
	case p.take("true"):
		return value{kind: boolean, truth: true}, nil
	case p.take("false"):
		return value{kind: boolean}, nil
	case len(p.left) > 0 && p.left[0] == '"':
		s, err := p.string()
		return value{kind: text, text: s}, err
	default:
		return p.number()
	}
}

func (p *parser) object(depth int) (value, error) {
	v := value{kind: object}
	if p.take("}") {
		return v, nil
	}
	for {
		p.skipSpace()
		name, err := p.string()
		if err != nil {
			return v, err
		}
		if !p.take(":") {
			return v, p.unexpected("a colon")
		}
		element, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.members = append(v.members, member{name: name, value: element})
		if p.take("}") {
			return v, nil
		}
		if !p.take(",") {
			return v, p.unexpected("a comma or a closing brace")
		}
	}
}

func (p *parser) array(depth int) (value, error) {
	v := value{kind: array}
	if p.take("]") {
		return v, nil
	}
	for {
		element, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, element)
		if p.take("]") {
			return v, nil
		}
		if !p.take(",") {
			return v, p.unexpected("a comma or a closing bracket")
		}
	}
}

// string reads a string that comes next.
func (p *parser) string() (string, error) {
	if len(p.left) == 0 || p.left[0] != '"' {
		return "", p.unexpected("a string")
	}
	end := 1
	for end < len(p.left) && p.left[end] != '"' {
		if p.left[end] < ' ' {
			p.left = p.left[end:]
			return "", p.unexpected("no control character in a string")
		}
		if p.left[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.left) {
		p.left = nil
		return "", p.unexpected("the end of a string")
	}
	var s string
	if err := json.Unmarshal(p.left[:end+1], &s); err != nil {
		return "", p.unexpected("a string with escapes that JSON knows")
	}
	p.left = p.left[end+1:]
	return strings.ToValidUTF8(s, string(utf8.RuneError)), nil
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

func (p *parser) number() (value, error) {
	form := numberForm.Find(p.left)
	if form == nil {
		return value{}, p.unexpected("a value")
	}
	p.left = p.left[len(form):]
	return value{kind: number, text: string(form)}, nil
}
