package fill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/documents.txt")

// sample is a line of testdata/schemas.jsonl: schemas that have documents.
type sample struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

func samples(t testing.TB) []sample {
	t.Helper()
	f, err := os.Open("testdata/schemas.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []sample
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		list = append(list, s)
	}
	return list
}

// seeds is how many documents are made of each sample.
const seeds = 100

func TestJSON(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.Name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				doc, err := JSON(s.Schema, seed)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if !json.Valid(doc) || len(doc) > 8192 {
					t.Fatalf("seed %d: %.200s of %d bytes, want a short JSON document", seed, doc, len(doc))
				}
				again, err := JSON(s.Schema, seed)
				if err != nil || !bytes.Equal(doc, again) {
					t.Fatalf("seed %d gave %s, and then %s, %v", seed, doc, again, err)
				}
			}
		})
	}
}

// TestJSON_Documents holds that documents stay the same from one build to the next.
func TestJSON_Documents(t *testing.T) {
	const path = "testdata/documents.txt"
	var got strings.Builder
	for _, s := range samples(t) {
		doc, err := JSON(s.Schema, 7)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%s: %s\n", s.Name, doc)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("documents (-want +got), rewritten with -update:\n%s", diff)
	}
}

func TestJSON_Varies(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`)
	docs := map[string]bool{}
	for seed := range uint64(50) {
		doc, err := JSON(schema, seed)
		if err != nil {
			t.Fatal(err)
		}
		docs[string(doc)] = true
	}
	if len(docs) < 40 {
		t.Errorf("50 seeds gave %d documents, want nearly as many", len(docs))
	}
}

func TestJSON_Errors(t *testing.T) {
	tests := []struct {
		name, schema, want string
	}{
		{"nothing", ``, "schema: ends at byte 0, want a value"},
		{"no JSON", `{"type":`, "schema: ends at byte 8, want a value"},
		{"two documents", `{} {}`, `schema: "{" at byte 3, want the end`},
		{"no schema", `[]`, "#: an array, want a schema: an object or a boolean"},
		{"no schema inside", `{"properties":{"a":5}}`, "#/properties/a: 5, want a schema: an object or a boolean"},
		{"never", `false`, "#: no document within 64 levels satisfies the schema"},
		{"type", `{"type":"text"}`, `#: type: "text", want null, boolean, integer, number, string, array, object or a list of them`},
		{"no type", `{"type":[]}`, "#: type: an empty list, want at least one type"},
		{"enum", `{"enum":[]}`, "#: enum: an array, want an array of at least one value"},
		{"properties", `{"properties":[]}`, "#: properties: an array, want an object"},
		{"required", `{"required":"a"}`, `#: required: "a", want an array of strings`},
		{"required names", `{"required":[1]}`, "#: required: 1, want strings"},
		{"anyOf", `{"items":{"anyOf":[]}}`, "#/items: anyOf: an array, want an array of at least one schema"},
		{"uniqueItems", `{"uniqueItems":1}`, "#: uniqueItems: 1, want a boolean"},
		{"count", `{"minItems":-1}`, "#: minItems: -1, want an integer of at least 0"},
		{"number", `{"minimum":"1"}`, `#: minimum: "1", want a number`},
		{"multipleOf", `{"multipleOf":0}`, "#: multipleOf: 0, want a number above 0"},
		{"reference", `{"$ref":"#/$defs/a"}`, `#: $ref: $ref "#/$defs/a" leads to nothing`},
		{"reference elsewhere", `{"$ref":"https://example.com/a"}`, `#: $ref: $ref "https://example.com/a", want a pointer into the schema such as "#/$defs/name"`},
		{"pattern", `{"pattern":"a(?=b)"}`, "#: pattern: \"a(?=b)\": error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		{"not supported", `{"properties":{"a":{"not":{}}}}`, "#/properties/a: not: not supported"},
		{"not supported behind a reference", `{"$ref":"#/$defs/a","$defs":{"a":{"if":{}}}}`, "#/$defs/a: if: not supported"},

		{"bounds", `{"type":"integer","minimum":2,"maximum":1}`, "#: no number found within the bounds"},
		{"lengths", `{"type":"string","minLength":2,"maxLength":1}`, "#: the schema contradicts itself"},
		{"items", `{"type":"array","minItems":2,"maxItems":1}`, "#: the schema contradicts itself"},
		{"types", `{"allOf":[{"type":"string"},{"type":"integer"}]}`, "#: the schema contradicts itself"},
		{"enum and type", `{"enum":["a"],"type":"integer"}`, "#: no value of enum or const satisfies the rest of the schema"},
		{"too few values", `{"type":"array","items":{"type":"boolean"},"minItems":3,"uniqueItems":true}`, "#: not enough different items found"},
		{"member that must not be", `{"properties":{"a":{}},"required":["b"],"additionalProperties":false}`, "#: no document within 64 levels satisfies the schema"},
		{"pattern and length", `{"properties":{"a":{"pattern":"^a{3}$","maxLength":2}},"required":["a"]}`, "#/properties/a: no string found that matches all patterns and lengths"},
		{"required members", `{"required":["a","b"],"maxProperties":1}`, "#: 2 required members, want at most 1"},
		{"oneOf", `{"oneOf":[{"const":1},{"const":1}]}`, "#: no value of enum or const satisfies the rest of the schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := JSON([]byte(tt.schema), 1)
			if err == nil {
				t.Fatalf("JSON gave %s, want error %q", doc, tt.want)
			}
			if err.Error() != tt.want {
				t.Errorf("JSON gave error %q, want %q", err, tt.want)
			}
		})
	}
}

// TestJSON_Hostile holds that no schema takes long, whatever it asks for: none of them a second, and each far less than the limit here,
// which leaves room for the race detector and a busy machine.
func TestJSON_Hostile(t *testing.T) {
	tests := []struct {
		name, schema, want string
	}{
		{"no base case", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, "#: no document within 64 levels"},
		{"circle of references", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "#: no document within 64 levels"},
		{"circle of sums", `{"allOf":[{"$ref":"#"}]}`, "#: no document within 64 levels"},
		{"circle of choices", `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, "#: no document within 64 levels"},
		{"a choice of itself", `{"anyOf":[{"$ref":"#"},{"type":"string"}]}`, ""},
		{"one choice of itself", `{"oneOf":[{"$ref":"#"},{"type":"string"}]}`, ""},
		{"chain of references", chain(20_000), ""},
		{"many properties", wide(70_000), "schema: more than 65536 values"},
		{"many required properties", wide(30_000), "it takes too much work"},
		{"long schema", `{"title":"` + strings.Repeat("a", maxSchemaBytes) + `"}`, "schema of 1048588 bytes, want at most 1048576"},
		{"deep schema", strings.Repeat(`{"items":`, 1000) + "{}" + strings.Repeat("}", 1000), "schema: more than 128 levels"},
		{"deep document", deep(100), "#: no document within 64 levels"},
		{"minItems", `{"type":"array","minItems":1000000000000}`, "#: minItems: 1000000000000, want at most 1024"},
		{"minLength", `{"type":"string","minLength":1e300}`, "#: minLength: 1e300, want at most 8192"},
		{"maxItems", `{"type":"array","maxItems":1e300}`, ""},
		{"long number", `{"minimum":1e1000000000}`, "#: minimum: 1e1000000000, want a number of at most 400 digits"},
		{"many digits", `{"const":1,"minimum":` + strings.Repeat("1", 1000) + `}`, "want a number of at most 400 digits"},
		{"small numbers", `{"type":"number","exclusiveMinimum":1e-199,"exclusiveMaximum":2e-199}`, ""},
		{"no number of few digits", `{"type":"number","exclusiveMinimum":1e-300,"exclusiveMaximum":2e-300}`, "#: no number found within the bounds"},
		{"arrays of arrays", nestedArrays(6), "it takes too much work"},
		{"long strings", `{"type":"array","minItems":1000,"items":{"minLength":8000}}`, "it takes too much work"},
		{"all of many choices", choices(40, 40), "it takes too much work"},
		{"choices of choices", doubling(60), ""},
		{"sums of sums", strings.ReplaceAll(doubling(60), "anyOf", "allOf"), "it takes too much work"},
		{"repeats", `{"pattern":"(((a*)*)*)*b{500}"}`, ""},
		{"repeats of repeats", `{"pattern":"((a{30}){30}){30}"}`, "#: pattern: "},
		{"long text of a large pattern", `{"pattern":"^` + strings.Repeat("[cd]{900}", 5) + `$"}`, "it takes too much work"},
		{"large class", `{"pattern":"^\\p{L}+$","minLength":8000}`, ""},
		{"patterns", patterns(500), "all patterns together repeat too much"},
		{"multiples", multiples300(), ""},
		{"long names", longNames(), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			doc, err := JSON([]byte(tt.schema), 1)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("JSON gave error %.300v, want a document", err)
			case tt.want != "" && err == nil:
				t.Errorf("JSON gave a document of %d bytes, want error %q", len(doc), tt.want)
			case tt.want != "" && (!strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000):
				t.Errorf("JSON gave error %.1000q, want %q", err, tt.want)
			}
		})
	}
}

// chain is a schema of n references, each to the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"$ref":"#/$defs/%d"},`, i, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/0","$defs":{%s"%d":{"type":"null"}}}`, b.String(), n)
}

func wide(n int) string {
	var b, names []string
	for i := range n {
		b = append(b, fmt.Sprintf(`"%d":{}`, i))
		names = append(names, fmt.Sprintf(`"%d"`, i))
	}
	if n > maxValues {
		names = nil
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]}`, strings.Join(b, ","), strings.Join(names, ","))
}

// deep is a schema whose documents have n levels, in a few levels of its own.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/%d"}},`, i, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/0","$defs":{%s"%d":{"type":"null"}}}`, b.String(), n)
}

func nestedArrays(n int) string {
	return strings.Repeat(`{"type":"array","minItems":1000,"items":`, n) + `{"type":"null"}` + strings.Repeat("}", n)
}

// choices is a sum of n choices, of which no two agree.
func choices(n, m int) string {
	var all []string
	for i := range n {
		var one []string
		for j := range m {
			one = append(one, fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, i*1000-j, i*1000+j))
		}
		all = append(all, fmt.Sprintf(`{"oneOf":[%s]}`, strings.Join(one, ",")))
	}
	return fmt.Sprintf(`{"allOf":[%s]}`, strings.Join(all, ","))
}

// doubling is a schema of n levels, each of which has the next twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/0","$defs":{%s"%d":{"type":"null"}}}`, b.String(), n)
}

func patterns(n int) string {
	var b []string
	for range n {
		b = append(b, `{"pattern":"[ab]{900}"}`)
	}
	return fmt.Sprintf(`{"anyOf":[%s]}`, strings.Join(b, ","))
}

// multiples300 is a sum of many numbers without a common divisor.
func multiples300() string {
	var b []string
	for i := range 100 {
		b = append(b, fmt.Sprintf(`{"multipleOf":%d}`, 101+2*i))
	}
	return fmt.Sprintf(`{"type":"integer","allOf":[%s]}`, strings.Join(b, ","))
}

// longNames has many schemas below a name that is half the schema.
func longNames() string {
	return fmt.Sprintf(`{"properties":{%q:{"enum":[0],"anyOf":[{}%s]}}}`, strings.Repeat("n", maxSchemaBytes/8), strings.Repeat(",{}", 50_000))
}

func TestObject(t *testing.T) {
	for seed := range uint64(20) {
		var o map[string]any
		if err := json.Unmarshal(Object(seed), &o); err != nil || len(o) != 4 {
			t.Errorf("Object(%d) = %s, %v, want an object of four members", seed, Object(seed), err)
		}
	}
}

func TestChoice(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		c, err := Choice([]string{"yes", "no"}, seed)
		if err != nil {
			t.Fatal(err)
		}
		seen[c]++
	}
	if seen["yes"] < 10 || seen["no"] < 10 || len(seen) != 2 {
		t.Errorf("60 choices of yes and no gave %v, want some of both", seen)
	}
	if c, err := Choice(nil, 1); err == nil {
		t.Errorf("Choice of nothing gave %q, want an error", c)
	}
}
