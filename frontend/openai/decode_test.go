package openai

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantError checks that err is an Error of that status whose message holds says.
func wantError(t *testing.T, err error, status int, says string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Status != status || !strings.Contains(e.Message, says) {
		t.Errorf("error = %#v, want status %d with %q", err, status, says)
	}
}

func TestDecode_Refused(t *testing.T) {
	for _, c := range []struct{ name, body, says string }{
		{"empty", "", "empty"},
		{"null", "null", "null"},
		{"array", "[]", "an array"},
		{"string", `"x"`, "a string"},
		{"cut", `{"prompt":`, "not valid JSON"},
		{"two values", `{} {}`, "not valid JSON"},
		{"trailing comma", `{"prompt":"x",}`, "not valid JSON"},
		{"NaN", `{"prompt":"x","temperature":NaN}`, "not valid JSON"},
		{"not UTF-8", "{\"prompt\":\"\xff\"}", "UTF-8"},
		{"float for int", `{"prompt":"x","max_tokens":1.5}`, "integer"},
		{"string for number", `{"prompt":"x","temperature":"hot"}`, "a number"},
		{"overflow", `{"prompt":"x","temperature":1e400}`, "temperature"},
		{"number for bool", `{"prompt":"x","stream":1}`, "boolean"},
		{"bool for string", `{"prompt":"x","model":true}`, "string"},
		{"prompt of object", `{"prompt":{}}`, "an object"},
		{"mixed prompt", `{"prompt":["a",1]}`, "mixed"},
		{"negative token", `{"prompt":[-1]}`, "only token ids"},
		{"token of 2^32", `{"prompt":[4294967296]}`, "only token ids"},
		{"stop of an object", `{"prompt":"x","stop":{}}`, "stop is an object, want a string or an array of strings"},
		{"stop of numbers", `{"prompt":"x","stop":["a",1]}`, "stop[1] is a number, want a string"},
		{"stop with null", `{"prompt":"x","stop":[null]}`, "null"},
		{"deep", `{"x":` + strings.Repeat("[", 100_000), "inside one another"},
		{"many values", `{"stop":[` + strings.Repeat(`"a",`, 1_000_000) + `"a"]}`, "strings, arrays and objects"},
		{"many numbers", `{"prompt":[` + strings.Repeat(`1,`, 5_000_000) + `1]}`, "elements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, Decode([]byte(c.body), &CompletionRequest{}), http.StatusBadRequest, c.says)
		})
	}
}

func TestDecode_Prompt(t *testing.T) {
	for _, c := range []struct {
		body string
		want Prompt
	}{
		{`{"prompt":"a\"b\\"}`, Prompt{Texts: []string{`a"b\`}}},
		{`{"prompt":["a","b"]}`, Prompt{Texts: []string{"a", "b"}}},
		{`{"prompt":[1,2]}`, Prompt{Tokens: [][]uint32{{1, 2}}}},
		{`{"prompt": [ [1], [2,3] ]}`, Prompt{Tokens: [][]uint32{{1}, {2, 3}}}},
		{`{"prompt":null}`, Prompt{}},
		{`{"prompt":[]}`, Prompt{}},
	} {
		var r CompletionRequest
		if err := Decode([]byte(c.body), &r); err != nil {
			t.Errorf("%s: %v", c.body, err)
		}
		if diff := cmp.Diff(c.want, r.Prompt); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
}

func TestDecode_UnknownAndNull(t *testing.T) {
	var r ChatRequest
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"x":1}],"y":{"z":[]},
		"stream":null,"temperature":null,"tools":null,"tool_choice":null,"stop":"s","response_format":null,"n":null}`
	if err := Decode([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(testLimits); err != nil {
		t.Fatal(err)
	}
	if got, want := r.Messages[0].Content.Text, "a\nb"; got != want {
		t.Errorf("content = %q, want %q", got, want)
	}
	if diff := cmp.Diff(Strings{"s"}, r.Stop); diff != "" || r.Count() != 1 || r.ToolChoice.Mode != ToolsNone {
		t.Errorf("stop %v, n %d, tools %q, want [s], 1, none", r.Stop, r.Count(), r.ToolChoice.Mode)
	}
}

func TestAppendString(t *testing.T) {
	got := string(AppendString(nil, "a\"\\\n\r\t\x01é</x>\u2028"))
	if want := `"a\"\\\n\r\t\u0001é</x>` + "\u2028\""; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestError_Append(t *testing.T) {
	got := string(ModelNotFound("x\"y").Append(nil))
	want := `{"error":{"message":"The model ` + "`x\\\"y`" + ` does not exist.","type":"NotFoundError","param":"model","code":404}}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := shorten(strings.Repeat("é", 200)); len(got) > 110 || !strings.HasSuffix(got, "é…") {
		t.Errorf("shortened to %q", got)
	}
}
