package fill

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"vllm-vcr/fuzzlimit"
)

// FuzzJSON holds that whatever a schema is, a document is JSON, the same for the same seed, and one that the check allows.
func FuzzJSON(f *testing.F) {
	for _, s := range samples(f) {
		f.Add([]byte(s.Schema), uint64(1))
	}
	f.Fuzz(func(t *testing.T, schema []byte, seed uint64) {
		defer fuzzlimit.Watch(t, len(schema))()
		doc, err := JSON(schema, seed)
		if err != nil {
			return
		}
		if !json.Valid(schema) {
			t.Errorf("%q is no JSON, and gave %s", schema, doc)
		}
		if !json.Valid(doc) || !utf8.Valid(doc) {
			t.Errorf("%s gave %q, which is no JSON", schema, doc)
		}
		if again, err := JSON(schema, seed); err != nil || string(again) != string(doc) {
			t.Errorf("%s gave %s, and then %s, %v", schema, doc, again, err)
		}
	})
}

// FuzzParse compares what is JSON here with what is JSON to Go's own reader.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+3,true,false,null,"\u00e9\ud83d\ude00\n"]}`, `[1,]`, `{"a" 1}`, `01`, `-`, `1.`, `.5`, `1e`, `"\x"`, `"\ud800"`, "\"\x01\"", "\"\xff\"",
		` [ ] `, `{"a":1,"a":2}`, `nul`, `[`, `"`, `"\`, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer fuzzlimit.Watch(t, len(b))()
		v, err := parse(b)
		if err == nil != json.Valid(b) {
			if err != nil && strings.Contains(err.Error(), "more than") {
				return // a limit
			}
			t.Fatalf("%q: parse gave error %v, encoding/json says valid = %v", b, err, json.Valid(b))
		}
		if err != nil {
			return
		}
		out := v.append(nil)
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Errorf("%q became %q, which is no JSON", b, out)
		}
		again, err := parse(out)
		if err != nil || again.key() != v.key() {
			t.Errorf("%q became %q, and that %q, %v", b, v.key(), again.key(), err)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	schema := []byte(`{"type":"object","properties":{"steps":{"type":"array","items":{"$ref":"#/$defs/Step"}},"final_answer":{"type":"string"}},
		"required":["steps","final_answer"],"additionalProperties":false,"$defs":{"Step":{"type":"object","properties":{
		"explanation":{"type":"string"},"output":{"type":"string"}},"required":["explanation","output"],"additionalProperties":false}}}`)
	b.ReportAllocs()
	for seed := uint64(0); b.Loop(); seed++ {
		if _, err := JSON(schema, seed); err != nil {
			b.Fatal(err)
		}
	}
}
