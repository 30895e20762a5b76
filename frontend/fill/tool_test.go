package fill

import (
	"encoding/json"
	"testing"
)

func TestCallTool(t *testing.T) {
	tools := []Tool{
		{Name: "weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city","days"]}`)},
		{Name: "now"},
		{Name: "stop", Parameters: []byte(`null`)},
		{Name: "note", Parameters: []byte(`{"title":"Note","default":{}}`)},
		{Name: "list", Parameters: []byte(`{"type":"array"}`)},
		{Name: "maybe", Parameters: []byte(`{"anyOf":[{"type":"string"},{"properties":{"a":{"const":1}},"required":["a"]}]}`)},
	}
	tests := []struct {
		name string
		tool string
		want []string // names of arguments
		err  string
	}{
		{name: "parameters", tool: "weather", want: []string{"city", "days"}},
		{name: "no parameters", tool: "now"},
		{name: "null", tool: "stop"},
		{name: "nothing about parameters", tool: "note"},
		{name: "an object among others", tool: "maybe", want: []string{"a"}},
		{name: "no object", tool: "list", err: `tool "list": parameters: #: the schema contradicts itself`},
		{name: "unknown", tool: "fly", err: `tool "fly": no tool has that name`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call, err := CallTool(tools, tt.tool, 3)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("CallTool gave %s and error %v, want %q", call.Arguments, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var arguments map[string]any
			if err := json.Unmarshal(call.Arguments, &arguments); err != nil || call.Name != tt.tool {
				t.Fatalf("CallTool gave %s of %s, %v, want an object for %s", call.Arguments, call.Name, err, tt.tool)
			}
			for _, name := range tt.want {
				if arguments[name] == nil {
					t.Errorf("arguments %s lack %q", call.Arguments, name)
				}
			}
		})
	}
}

func TestCallTool_Any(t *testing.T) {
	tools := []Tool{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	seen := map[string]int{}
	for seed := range uint64(90) {
		call, err := CallTool(tools, "", seed)
		if err != nil {
			t.Fatal(err)
		}
		seen[call.Name]++
	}
	for _, tool := range tools {
		if seen[tool.Name] < 15 {
			t.Errorf("90 seeds called %v, want each tool about 30 times", seen)
		}
	}
	if _, err := CallTool(nil, "", 1); err == nil || err.Error() != "tools: none, want at least one" {
		t.Errorf("CallTool without tools gave error %v", err)
	}
}
