package openai

import "github.com/goccy/go-json"

// Output are the fields that bind an answer to a form.
type Output struct {
	ResponseFormat *ResponseFormat    `json:"response_format"`
	Structured     *StructuredOutputs `json:"structured_outputs"`
}

// ResponseFormat is OpenAI's way to ask for JSON.
type ResponseFormat struct {
	Type       string      `json:"type"` // text, json_object or json_schema
	JSONSchema *JSONSchema `json:"json_schema"`
}

// JSONSchema is a schema with a name.
type JSONSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// StructuredOutputs is vLLM's way; exactly one of the fields is set.
type StructuredOutputs struct {
	JSON          json.RawMessage `json:"json"` // a schema, or a string that holds one
	Regex         *string         `json:"regex"`
	Choice        []string        `json:"choice"`
	Grammar       *string         `json:"grammar"`
	JSONObject    *bool           `json:"json_object"`
	StructuralTag json.RawMessage `json:"structural_tag"`
}

// Constraint is the form that an answer must have. At most one field is set.
type Constraint struct {
	Schema     json.RawMessage // a JSON document that this schema allows
	JSONObject bool            // any JSON object
	Regex      string
	Choice     []string
}

// IsZero says whether nothing binds the answer.
func (c *Constraint) IsZero() bool {
	return c.Schema == nil && !c.JSONObject && c.Regex == "" && c.Choice == nil
}

func (o *Output) check() error {
	_, err := o.Constraint()
	return err
}

// Constraint brings both ways together. The error is an [*Error].
func (o *Output) Constraint() (Constraint, error) {
	c, err := o.Structured.constraint()
	if err != nil || o.ResponseFormat == nil {
		return c, err
	}
	switch f := o.ResponseFormat; f.Type {
	case "text":
		return c, nil
	case "json_object":
		c = Constraint{JSONObject: true}
	case "json_schema":
		if f.JSONSchema == nil || isNull(f.JSONSchema.Schema) {
			return c, BadRequest("response_format", "response_format of type json_schema must have a json_schema with a schema.")
		}
		c = Constraint{Schema: f.JSONSchema.Schema}
	default:
		return c, BadRequest("response_format", "response_format.type is %q, want text, json_object or json_schema.", shorten(f.Type))
	}
	if !isSchema(c.Schema) && !c.JSONObject {
		return c, BadRequest("response_format", "response_format: the schema is %s, want an object or a boolean.", describe(c.Schema))
	}
	return c, nil
}

func (s *StructuredOutputs) constraint() (Constraint, error) {
	var c Constraint
	if s == nil {
		return c, nil
	}
	n := 0
	for _, set := range []bool{!isNull(s.JSON), s.Regex != nil, s.Choice != nil, s.Grammar != nil, s.JSONObject != nil && *s.JSONObject, !isNull(s.StructuralTag)} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return c, BadRequest("structured_outputs", "structured_outputs must have exactly one of json, regex, choice and json_object, got %d.", n)
	case s.Grammar != nil || !isNull(s.StructuralTag):
		return c, BadRequest("structured_outputs", "structured_outputs: grammar and structural_tag are not supported here, want json, regex, choice or json_object.")
	case s.Choice != nil && len(s.Choice) == 0:
		return c, BadRequest("structured_outputs", "structured_outputs: choice must not be empty.")
	case s.Regex != nil && *s.Regex == "":
		return c, BadRequest("structured_outputs", "structured_outputs: regex must not be empty.")
	}
	c.JSONObject, c.Choice = s.JSONObject != nil && *s.JSONObject, s.Choice
	if s.Regex != nil {
		c.Regex = *s.Regex
	}
	return c, s.schema(&c)
}

// schema takes the schema as an object, or as a string that holds one.
func (s *StructuredOutputs) schema(c *Constraint) error {
	if isNull(s.JSON) {
		return nil
	}
	c.Schema = s.JSON
	if s.JSON[0] == '"' {
		var text string
		if err := json.Unmarshal(s.JSON, &text); err != nil || !json.Valid([]byte(text)) {
			return BadRequest("structured_outputs", "structured_outputs: json is a string that holds no JSON.")
		}
		c.Schema = json.RawMessage(text)
	}
	if !isSchema(c.Schema) {
		return BadRequest("structured_outputs", "structured_outputs: json is %s, want a schema.", describe(c.Schema))
	}
	return nil
}

func isSchema(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '{' || raw[0] == 't' || raw[0] == 'f')
}
